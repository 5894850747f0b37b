package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestADaemonStartedLateIsCancelledToo: by a daemon that has been told to go,
// and by an exit hook.
func TestADaemonStartedLateIsCancelledToo(t *testing.T) {
	serve := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, start := range map[string]func(ctx context.Context){
		"in its place": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(ctx, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by itself": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(own, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by an exit hook": func(ctx context.Context) {
			async.Go(ctx, serve, async.Daemon())
			async.OnExit(ctx, func(context.Context, error) error {
				async.Go(ctx, serve, async.Daemon())
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				outer, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
					start(ctx)
					return nil
				}))
				tookAbout(t, 0, begin)
			})
		})
	}
}

// TestDaemonsAreDismissedWhileOthersAreStarted is for the race detector.
func TestDaemonsAreDismissedWhileOthersAreStarted(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range fewer(6000, 1200) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				for range i % 100 {
					runtime.Gosched()
				}
				for range 3 {
					async.Go(ctx, nothing, async.Daemon())
				}
				return nil
			}, async.Daemon())
			for range i % 37 {
				runtime.Gosched()
			}
			return nil
		}, async.Limit(100)))
	}
}

// A standard context cancels those below it one after another: the scope may hear of it,
// and be about to end, before its daemon does.
func TestADaemonOfACancelledScopeHearsOfThatCause(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 300 { // they make the walk long
			_, stop := context.WithCancel(ctx)
			defer stop()
		}
		var cause error
		var ready sync.WaitGroup
		ready.Add(2)
		go func() { ready.Wait(); cancel(errPlanted) }()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				done := ctx.Done()
				ready.Done()
				<-done
				cause = context.Cause(ctx)
				return nil
			}, async.Daemon())
			done := ctx.Done()
			ready.Done()
			<-done
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, errPlanted, cause)
	}
}

// TestADaemonThatStopsWhenToldFailsNobody: what real services return as they
// stop is not a failure of a scope that went well.
func TestADaemonThatStopsWhenToldFailsNobody(t *testing.T) {
	for name, daemon := range map[string]func(ctx context.Context) error{
		"server": func(ctx context.Context) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			s := &http.Server{ReadHeaderTimeout: time.Second}
			defer context.AfterFunc(ctx, func() { s.Close() })()
			return s.Serve(l)
		},
		"process": func(ctx context.Context) error { return exec.CommandContext(ctx, "sleep", "60").Run() },
		"words":   func(ctx context.Context) error { <-ctx.Done(); return errors.New("rpc: code = Canceled") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				async.Go(ctx, daemon, async.Daemon())
				async.Start(ctx, daemon, async.Daemon())
				return nil
			}))
		})
	}
}

// TestWhatADaemonSaysCounts unless its scope has told it to stop.
func TestWhatADaemonSaysCounts(t *testing.T) {
	own := errors.New("own words")
	stopped := func(ctx context.Context) error { <-ctx.Done(); return own }
	for name, test := range map[string]struct {
		daemon func(ctx context.Context) error
		opts   []async.TaskOption
		body   error
		parent bool // is cancelled
		want   error
	}{
		"dismissed":                      {stopped, nil, nil, false, nil},
		"stopped by the failing body":    {stopped, nil, errPlanted, false, errPlanted},
		"stopped with its scope's owner": {stopped, nil, nil, true, nil},
		"fails by itself":                {func(context.Context) error { return own }, nil, nil, false, own},
		"its own timeout":                {stopped, []async.TaskOption{async.Timeout(time.Second)}, nil, false, own},
		"its own heartbeat":              {stopped, []async.TaskOption{async.Heartbeat(time.Second)}, nil, false, async.ErrNoBeat},
		"its exit hook fails": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return own })
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, own},
		"a task of it stops": {func(ctx context.Context) error {
			async.Go(ctx, stopped)
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, nil},
		"a task of it fails by itself": {func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return own })
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, own},
		"it calls Goexit": {func(ctx context.Context) error {
			<-ctx.Done()
			runtime.Goexit()
			return nil
		}, nil, nil, false, async.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, test.daemon, append(test.opts, async.Daemon())...)
					if test.opts != nil {
						time.Sleep(time.Minute) // the daemon ends first
					}
					if test.parent {
						stop()
					}
					time.Sleep(time.Second)
					return test.body
				})
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.want)
				}
				if test.body != nil {
					require.True(t, err == test.body || slices.Equal(err.(*async.ScopeError).Errors, []error{test.body}), "the daemon adds no failure")
				}
			})
		})
	}
}

func TestADaemonThatPanicsAsItStopsIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); plantedPanic(); return nil }, async.Daemon())
				return nil
			})
		}), errPlanted)
	})
}

// TestWhatADaemonSaysIsTold to observers and to its awaiters, failure or not.
func TestWhatADaemonSaysIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own words")
		var seen error
		var f *async.Future[struct{}]
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f = async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return own }, async.Daemon(), async.Name("daemon"))
			return nil
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			if e.Kind == async.EventEnd && e.Task == "daemon" {
				seen = e.Err
			}
		}))))
		require.ErrorIs(t, seen, own)
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, own)
		require.ErrorIs(t, err, async.ErrDismissed)
	})
}

// TestWhatATaskSaysAsItStopsIsItsOwn: it is told beside what went wrong in the
// task, but it is no failure of the scope.
func TestWhatATaskSaysAsItStopsIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own, below := errors.New("own words"), errors.New("below")
		stops := func(end func(ctx context.Context) error) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return end(ctx) })
				<-ctx.Done()
				return own
			}
		}
		var f *async.Future[struct{}]
		err := async.Scope(ctx, func(ctx context.Context) error {
			f = async.Start(ctx, stops(func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return below })
				return nil
			}), async.Daemon())
			return nil
		})
		require.ErrorIs(t, err, below)
		require.NotErrorIs(t, err, own)
		_, err = f.Wait(ctx)
		require.ErrorIs(t, err, below)
		require.ErrorIs(t, err, own)

		require.ErrorIs(t, panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f = async.Start(ctx, stops(func(context.Context) error { plantedPanic(); return nil }), async.Daemon())
				return nil
			})
		}), errPlanted)
		_, err = f.Wait(ctx)
		require.ErrorIs(t, err, errPlanted) // and the root is told of the rest
	})
}

// TestWhatADaemonHasStartedStopsQuietly when the owner of the daemon has told it to.
func TestWhatADaemonHasStartedStopsQuietly(t *testing.T) {
	serve := func(ctx context.Context) error { <-ctx.Done(); return errors.New("http: Server closed") }
	for name, start := range map[string]func(ctx context.Context) error{
		"a task":   func(ctx context.Context) error { async.Go(ctx, serve); return nil },
		"a future": func(ctx context.Context) error { async.Start(ctx, serve); return nil },
		"a scope": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, serve); return nil })
		},
		"a body": func(ctx context.Context) error { return async.Scope(ctx, serve) },
		"items": func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, _ int) error { return serve(ctx) })
		},
		"a fork": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1, 2}, func(ctx context.Context, _ int) (int, error) { return 0, serve(ctx) })
			return nil
		},
		"deep": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, serve); return nil })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, start, async.Daemon())
					return nil
				}))
				require.Equal(t, errPlanted, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, start, async.Daemon())
					time.Sleep(time.Second)
					return errPlanted
				}), "it adds nothing")
			})
		})
	}
}

// TestWhatIsLoudInADaemonIsToldOnce, and is why the scope of the daemon was cancelled.
func TestWhatIsLoudInADaemonIsToldOnce(t *testing.T) {
	for name, daemon := range map[string]func(ctx context.Context) error{
		"a hook": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
			return async.Sleep(ctx, time.Hour)
		},
		"a hook of a task of it": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
				<-ctx.Done()
				return errors.New("http: Server closed")
			})
			return nil
		},
		"a failure before": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			<-ctx.Done()
			return nil
		},
		"a time limit of a task of it": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Timeout(-1))
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var seen error
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(_ context.Context, outcome error) error { seen = outcome; return nil })
					async.Go(ctx, daemon, async.Daemon())
					time.Sleep(time.Second) // it may fail before it is dismissed
					return nil
				})
				require.ErrorIs(t, err, errPlanted)
				require.Equal(t, seen, err)
				var e *async.ScopeError
				if errors.As(err, &e) { // with a time limit, why the task was stopped
					require.NotErrorIs(t, e.Cause, errPlanted)
				}
			})
		})
	}
}

// The scope ends well and dismisses a daemon that says more than why: the root is told in one line.
func TestADismissedDaemonsTextIsToldToTheRoot(t *testing.T) {
	for name, say := range map[string]func(ctx context.Context) error{
		"wraps the error of the context": onStop(rows),
		"wraps the cause":                func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("%s: %w", rows, context.Cause(ctx)) },
		"wraps both": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("%s: %w", rows, errors.Join(ctx.Err(), context.Cause(ctx)))
		},
		"of a task in it": func(ctx context.Context) error { async.Go(ctx, onStop(rows)); return nil },
	} {
		for how, start := range map[string]func(ctx context.Context){
			"Go":    func(ctx context.Context) { async.Go(ctx, say, async.Daemon()) },
			"Start": func(ctx context.Context) { async.Start(ctx, say, async.Daemon()) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
					if err := async.Scope(ctx, func(ctx context.Context) error { start(ctx); return nil }); err != nil {
						t.Error(err)
					}
					if n := r.count(rows); n != 1 {
						t.Errorf("the root was told %d times: %q", n, r.all())
					}
				})
			})
		}
	}
}

// TestADaemonIsStartedAgainUntilItIsDismissed: in a run or in the wait, that is no
// failure, whatever it returns then.
func TestADaemonIsStartedAgainUntilItIsDismissed(t *testing.T) {
	closed := errors.New("http: Server closed")
	for name, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
		for how, opts := range map[string][]async.ScopeOption{"plain": nil, "limit": {async.Limit(1)}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					runs := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							if runs++; runs == 1 {
								return errRun
							}
							_ = async.Sleep(ctx, lasts)
							return closed
						}, async.Daemon(), everySecond)
						async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3500*time.Millisecond) })
						return nil
					}, opts...))
					tookAbout(t, 3500*time.Millisecond, begin)
				})
			})
		}
	}
	t.Run("what its tasks say as they stop is no failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
					<-ctx.Done()
					return closed
				}, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Second)
			})
			require.NoError(t, err)
		})
	})
	t.Run("its own timeout is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return closed },
					async.Daemon(), everySecond, async.Timeout(time.Second))
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorIs(t, err, closed)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("given up it is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorAs(t, err, new(*async.RestartError))
		})
	})
}

// TestABodyThatIsStoppedKeepsItsOwnWords: an error that says more than that the
// scope was cancelled is not lost, but nothing is said twice.
func TestABodyThatIsStoppedKeepsItsOwnWords(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		copying := func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("copying: %w", ctx.Err())
		}
		err := async.Scope(ctx, copying, async.Timeout(time.Second))
		require.ErrorContains(t, err, "copying")
		var limit *async.TimeoutError
		require.ErrorAs(t, err, &limit)

		// A failure beside it is listed, the text is not.
		late := func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(2 * time.Second); return errPlanted })
			<-ctx.Done()
			return fmt.Errorf("copying: %w", context.Cause(ctx))
		}
		var all *async.ScopeError
		require.ErrorAs(t, async.Scope(ctx, late, async.Timeout(time.Second)), &all)
		require.Equal(t, []error{errPlanted}, all.Errors)
		require.ErrorContains(t, all.Stopped[0], "copying")
		require.ErrorContains(t, all, "copying")

		// Also when what stopped it is a failure inside.
		err = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return errPlanted })
			return copying(ctx)
		})
		require.ErrorAs(t, err, &all)
		require.Equal(t, []error{errPlanted}, all.Errors)
		require.ErrorContains(t, all.Stopped[0], "copying")
	})
}
