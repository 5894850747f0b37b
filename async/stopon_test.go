package async_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// closedAfter returns a channel that is closed after a while.
func closedAfter(d time.Duration) <-chan struct{} {
	ch := make(chan struct{})
	time.AfterFunc(d, func() { close(ch) })
	return ch
}

// watchers returns how many goroutines wait for channels of StopOn. One that has
// been joined may need a moment to be gone.
func watchers() (n int) {
	buf := make([]byte, 1<<20)
	for range 100_000 {
		if n = strings.Count(string(buf[:runtime.Stack(buf, true)]), ".closing.wait("); n == 0 {
			break
		}
		runtime.Gosched()
	}
	return n
}

// inside runs f with a context that is stopped by the option that it is given.
type inside func(ctx context.Context, stop async.Option, f func(ctx context.Context) error)

var insideStopOn = map[string]inside{
	"Scope": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_ = async.Scope(ctx, f, stop)
	},
	"Group": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		g := async.NewGroup(ctx, stop)
		_ = f(g.Context())
		_ = g.Wait(ctx)
	},
	"Go": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		async.Go(ctx, f, stop)
	},
	"future": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_, _ = async.Start(ctx, f, stop).Await(ctx, 0)
	},
	"Restart": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_, _ = async.Start(ctx, f, stop, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Await(ctx, 0)
	},
	"a scope in a scope in it": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { return async.Scope(ctx, f) })
		}, stop)
	},
	"a task in it": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_ = async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, f); return nil }, stop)
	},
	"scopes with channels of their own in it": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		never := async.StopOn(make(chan struct{}), nil)
		_ = async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, f, never); return nil }, never)
		}, stop)
	},
	"the inner of two that are stopped": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, stop)
			return nil
		}, async.StopOn(make(chan struct{}), nil))
	},
	"the first of two": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		_ = async.Scope(ctx, f, stop, async.StopOn(make(chan struct{}), nil))
	},
	"the last of two": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		async.Go(ctx, f, async.StopOn(make(chan struct{}), nil), stop)
	},
	"under WithoutCancel": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		async.Go(context.WithoutCancel(ctx), f, stop)
	},
	"under another ctx": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, _ = async.Start(ctx, f, stop).Await(ctx, 0)
	},
	"at the root": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		root, _ := asynctest.Root(context.Background())
		_, _ = async.Start(root, f, stop).Await(ctx, 0)
	},
	"detached": func(ctx context.Context, stop async.Option, f func(ctx context.Context) error) {
		root, _ := asynctest.Root(context.Background())
		async.Detach(root, "d", f, stop)
	},
}

// TestAChannelIsWatchedFromTheStart, and the goroutine that does so ends with the task.
func TestAChannelIsWatchedFromTheStart(t *testing.T) {
	for name, in := range insideStopOn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ch, ran := make(chan struct{}), false
				_ = async.Scope(ctx, func(ctx context.Context) error {
					in(ctx, async.StopOn(ch, io.EOF), func(ctx context.Context) error {
						ran = true
						require.NoError(t, ctx.Err())
						close(ch)
						time.Sleep(time.Nanosecond) // until everybody else waits; nobody has asked for Done
						require.Equal(t, context.Canceled, ctx.Err())
						require.Equal(t, io.EOF, context.Cause(ctx))
						<-ctx.Done()
						return nil
					})
					return nil
				})
				time.Sleep(time.Second) // also for a detached task
				synctest.Wait()
				require.True(t, ran)
				require.Zero(t, watchers())
			})
		})
	}
}

// TestAForkIsStoppedByAChannel, whether its workers run or queue.
func TestAForkIsStoppedByAChannel(t *testing.T) {
	stop := func() async.Option { return async.StopOn(closedAfter(time.Second), io.EOF) }
	wait := func(ctx context.Context, _ int) (int, error) { return 0, async.Sleep(ctx, time.Hour) }
	for name, fork := range map[string]func(ctx context.Context) error{
		"ForkJoin": func(ctx context.Context) error {
			_, err := async.ForkJoin(ctx, []int{1, 2}, wait, stop()).Join(ctx)
			return err
		},
		"ForkJoin that queues": func(ctx context.Context) error {
			hold := make(chan struct{})
			defer close(hold)
			return async.Scope(ctx, func(ctx context.Context) error {
				time.AfterFunc(time.Minute, func() { hold <- struct{}{} })
				async.Go(ctx, func(context.Context) error { <-hold; return nil })
				_, err := async.ForkJoin(ctx, []int{1, 2}, wait, stop()).Join(ctx)
				return err
			}, async.Limit(1))
		},
		"ForEach": func(ctx context.Context) error {
			return async.ForEach(ctx, endlessItems, func(ctx context.Context, _ int) error { return async.Sleep(ctx, time.Hour) }, async.Limit(2), stop())
		},
		"closed before": func(ctx context.Context) error {
			shut := make(chan struct{})
			close(shut)
			_, err := async.ForkJoin(ctx, []int{1, 2}, wait, async.StopOn(shut, io.EOF)).Join(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start := time.Now()
					defer func() { require.Less(t, time.Since(start), 2*time.Minute) }()
					return fork(ctx)
				})
				require.ErrorIs(t, err, io.EOF)
				require.Zero(t, watchers())
			})
		})
	}
}

// TestWhoeverMustBeToldIsToldThatAChannelWasClosed.
func TestWhoeverMustBeToldIsToldThatAChannelWasClosed(t *testing.T) {
	never := func(ctx context.Context) *async.Future[int] {
		f, _ := async.NewPromise[int](context.WithoutCancel(ctx))
		return f
	}
	for use, told := range map[string]func(ctx context.Context) error{
		"Done": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"AfterFunc": func(ctx context.Context) error {
			c := make(chan error)
			context.AfterFunc(ctx, func() { c <- context.Cause(ctx) })
			return <-c
		},
		"derived ctx": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"Sleep":    func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) },
		"Await":    func(ctx context.Context) error { _, err := never(ctx).Await(ctx, time.Hour); return err },
		"Wait":     func(ctx context.Context) error { _, err := never(ctx).Wait(ctx); return err },
		"AwaitAll": func(ctx context.Context) error { return async.AwaitAll(ctx, 0, never(ctx))[0].Err },
		"promise":  func(ctx context.Context) error { f, _ := async.NewPromise[int](ctx); _, err := f.Join(ctx); return err },
		"abort hook": func(ctx context.Context) error {
			c := make(chan error, 1)
			f := async.Start(ctx, func(context.Context) error { return <-c }, async.OnAbort(func(_ context.Context, cause error) error { c <- cause; return nil }))
			_, err := f.Join(ctx)
			return err
		},
		"queued task": func(ctx context.Context) (err error) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				hold := make(chan struct{})
				async.Go(ctx, func(context.Context) error { <-hold; return nil })
				f := async.Start(ctx, func(context.Context) error { return errPlanted })
				_, err = f.Join(ctx)
				close(hold)
				return nil
			}, async.Limit(1))
			return err
		},
		"queued on an executor": func(ctx context.Context) error {
			_, err := async.Start(ctx, idle, async.On(pool(func(func()) error { return nil }))).Join(ctx)
			return err
		},
		"waits to be started again": func(ctx context.Context) error {
			_, err := async.Start(ctx, func(context.Context) error { return errPlanted }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)})).Join(ctx)
			return err
		},
		"DetachAfter": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				return nil
			}, async.DetachAfter(time.Second))
		},
		"OnStall": func(ctx context.Context) error {
			c := make(chan error, 1)
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { c <- <-c; return nil })
				return nil
			}, async.OnStall(time.Second, func(e *async.StragglerError) {
				if e.Cause != nil {
					c <- e
				}
			}))
			return <-c
		},
		"Timeout": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, async.Timeout(time.Hour))
		},
		"items": func(ctx context.Context) error {
			return async.ForEach(ctx, endlessItems, func(ctx context.Context, _ int) error { return async.Sleep(ctx, time.Second) }, async.Limit(2))
		},
		"race": func(ctx context.Context) error {
			_, err := async.Race(ctx, func(ctx context.Context) (int, error) { return 0, async.Sleep(ctx, time.Hour) }).Join(ctx)
			return err
		},
	} {
		for where, in := range insideStopOn {
			t.Run(use+", "+where, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var err error
					start := time.Now()
					_ = async.Scope(ctx, func(ctx context.Context) error {
						in(ctx, async.StopOn(closedAfter(time.Minute), io.EOF), func(ctx context.Context) error {
							err = told(ctx)
							require.Less(t, time.Since(start), 2*time.Minute)
							return nil
						})
						return nil
					})
					time.Sleep(2 * time.Hour)
					synctest.Wait() // also for a detached task
					require.ErrorIs(t, err, io.EOF)
					require.Zero(t, watchers())
				})
			})
		}
	}
}

// TestTheFirstOfSeveralThatStopCounts, channels and contexts.
func TestTheFirstOfSeveralThatStopCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, stop := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Minute, func() { stop(io.EOF) })
		err := async.Scope(ctx, echoes, async.StopWith(other), async.StopOn(closedAfter(time.Second), errPlanted))
		require.ErrorIs(t, err, errPlanted)
		err = async.Scope(ctx, echoes, async.StopWith(other), async.StopOn(closedAfter(time.Hour), errPlanted))
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestAScopeThatAChannelHasStoppedSaysSo, as with any other cause.
func TestAScopeThatAChannelHasStoppedSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		body  func(ctx context.Context) error
		well  bool
		fails error
	}{
		"body echoes":     {body: echoes},
		"task echoes":     {body: func(ctx context.Context) error { async.Go(ctx, echoes); return nil }},
		"nothing is kept": {body: waitHook, well: true},
		"daemon": {body: func(ctx context.Context) error {
			async.Go(ctx, failsWhenStopped(io.ErrShortWrite), async.Daemon())
			return waitHook(ctx)
		}, well: true},
		"task fails":  {body: func(ctx context.Context) error { async.Go(ctx, failsWhenStopped(io.ErrShortWrite)); return nil }, fails: io.ErrShortWrite},
		"inner scope": {body: func(ctx context.Context) error { return async.Scope(ctx, echoes) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, test.body, async.StopOn(closedAfter(time.Second), io.EOF))
				if test.well {
					require.NoError(t, err)
					return
				}
				var scope *async.ScopeError
				require.ErrorAs(t, err, &scope)
				require.Equal(t, io.EOF, scope.Cause)
				require.ErrorIs(t, err, context.Canceled)
				if test.fails != nil {
					require.Equal(t, []error{test.fails}, scope.Errors)
				} else {
					require.Empty(t, scope.Errors)
				}
			})
		})
	}
}

// TestATaskThatItsOwnChannelHasStoppedHasFailed unless it returned nil, as with its
// own Timeout: nobody around it was told to stop.
func TestATaskThatItsOwnChannelHasStoppedHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		task func(ctx context.Context) error
		want error
	}{
		"echo":      {echoes, io.EOF},
		"own error": {failsWhenStopped(io.ErrShortWrite), io.ErrShortWrite},
		"nil":       {waitHook, nil},
	} {
		stop := func() async.TaskOption { return async.StopOn(closedAfter(time.Second), io.EOF) }
		for kind, body := range map[string]func(ctx context.Context) error{
			"Go":     func(ctx context.Context) error { async.Go(ctx, test.task, stop()); return nil },
			"future": func(ctx context.Context) error { async.Start(ctx, test.task, stop()); return nil },
			"daemon": func(ctx context.Context) error {
				async.Go(ctx, test.task, stop(), async.Daemon())
				return async.Sleep(ctx, time.Minute)
			},
			"awaited": func(ctx context.Context) error {
				_, err := async.Start(ctx, test.task, stop()).Await(ctx, 0)
				return err
			},
			"Restart": func(ctx context.Context) error {
				async.Go(ctx, test.task, stop(), async.Restart(async.RestartPolicy{Interval: async.Every(1)}))
				return nil
			},
			"under WithoutCancel": func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), test.task, stop())
				return nil
			},
			"poll": func(ctx context.Context) error {
				_, err := async.Repeat(ctx, async.Every(time.Minute), test.task, stop()).Await(ctx, 0)
				if test.want == nil {
					require.ErrorIs(t, err, io.EOF) // a repetition that is stopped has not come to its end
					return nil
				}
				return err
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := async.Scope(ctx, body)
					if test.want == nil {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, test.want)
					require.Zero(t, watchers())
				})
			})
		}
	}
}

func TestAChannelThatWasClosedBeforeStopsATaskAsItStarts(t *testing.T) {
	shut := make(chan struct{})
	close(shut)
	stop := async.StopOn(shut, io.EOF)
	for range fewer(200, 20) {
		hooked := make(chan error, 1)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			require.Equal(t, context.Canceled, ctx.Err())
			f, _ := async.NewPromise[int](ctx, stop)
			_, err := f.Join(ctx)
			require.ErrorIs(t, err, io.EOF)
			f = async.Execute(context.WithoutCancel(ctx), func(ctx context.Context) (int, error) {
				return 1, ctx.Err()
			}, stop, async.OnAbort(func(_ context.Context, cause error) error { hooked <- cause; return nil }))
			_, err = f.Join(ctx)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, io.EOF, <-hooked)
			return nil
		}, stop)
		require.ErrorIs(t, err, io.EOF)
	}
}

// TestOnlyThatTheChannelIsClosedCounts, not what is sent to it.
func TestOnlyThatTheChannelIsClosedCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ch := make(chan struct{}, 4)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				ch <- struct{}{}
				require.NoError(t, ctx.Err())
			}
			done := ctx.Done()
			for range 3 {
				ch <- struct{}{}
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err())
			}
			close(ch)
			<-done
			require.Equal(t, context.Canceled, context.Cause(ctx), "a nil cause")
			return nil
		}, async.StopOn(ch, nil)))
	})
}

// TestShieldProtectsFromAChannel that stops what is around it.
func TestShieldProtectsFromAChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return ctx.Err() })
			<-ctx.Done()
			return async.Shield(ctx, time.Minute, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
		}, async.StopOn(closedAfter(time.Second), io.EOF))
		require.NoError(t, err)
	})
}

// TestAChannelMayBeClosedAsItsScopeEnds: nothing is left, whichever comes first.
func TestAChannelMayBeClosedAsItsScopeEnds(t *testing.T) {
	for i := range fewer(3000, 100) {
		ch, closer := make(chan struct{}), make(chan struct{})
		go func() { close(ch); close(closer) }()
		stop := async.StopOn(ch, io.EOF)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			switch i % 4 {
			case 0:
				_ = ctx.Done()
			case 1:
				f, p := async.NewPromise[int](ctx, stop)
				async.Go(ctx, func(context.Context) error { p.Resolve(1); return nil })
				_, _ = f.Wait(ctx)
			case 2:
				for range 3 {
					async.Go(ctx, idle, stop)
				}
			case 3:
				_, _ = async.Start(ctx, func(ctx context.Context) error { _ = ctx.Done(); return nil }, stop).Await(ctx, 0)
			}
			return nil
		}, stop, async.Limit(1))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		<-closer
		if i%100 == 0 {
			require.Zero(t, watchers())
		}
	}
}

// TestTasksInTasksWithChannelsAreStopped, however many there are.
func TestTasksInTasksWithChannelsAreStopped(t *testing.T) {
	ch := make(chan struct{})
	var nest func(ctx context.Context, depth int) error
	nest = func(ctx context.Context, depth int) error {
		if depth == 0 {
			close(ch)
			for ctx.Err() == nil {
				runtime.Gosched()
			}
			return context.Cause(ctx)
		}
		_, err := async.Start(ctx, func(ctx context.Context) error { return nest(ctx, depth-1) }, async.StopOn(make(chan struct{}), nil)).Join(ctx)
		return err
	}
	_, err := async.Start(asynctest.Context(t), func(ctx context.Context) error { return nest(ctx, 100) }, async.StopOn(ch, io.EOF)).Join(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, watchers())
}
