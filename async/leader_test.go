package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// echoes is a task that ends when it is told to, and says no more than that.
func echoes(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// tick is a task that takes a second.
func tick(context.Context) error { time.Sleep(time.Second); return nil }

// waysToLead are the tasks that may be leaders. Each ends after a second.
var waysToLead = map[string]func(ctx context.Context, opts ...async.TaskOption){
	"Go":    func(ctx context.Context, opts ...async.TaskOption) { async.Go(ctx, tick, opts...) },
	"Start": func(ctx context.Context, opts ...async.TaskOption) { async.Start(ctx, tick, opts...) },
	"Execute": func(ctx context.Context, opts ...async.TaskOption) {
		async.Execute(ctx, stubborn(time.Second, 1, nil), opts...)
	},
	"with a discard hook": func(ctx context.Context, opts ...async.TaskOption) {
		async.Execute(ctx, stubborn(time.Second, 1, nil), append(opts, async.OnDiscard(func(int) {}))...)
	},
	"with a task": func(ctx context.Context, opts ...async.TaskOption) {
		async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, tick); return nil }, opts...)
	},
	"promise": func(ctx context.Context, opts ...async.TaskOption) {
		_, p := async.NewPromise[int](ctx, opts...)
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); p.Resolve(1); return nil })
	},
	"Restart": func(ctx context.Context, opts ...async.TaskOption) {
		runs := 0
		async.Go(ctx, func(context.Context) error {
			if runs++; runs < 3 {
				return errPlanted
			}
			return nil
		}, append(opts, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second / 2)}))...)
	},
	"Restart of a future": func(ctx context.Context, opts ...async.TaskOption) {
		async.Start(ctx, tick, append(opts, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second / 2)}))...)
	},
	"Repeat": func(ctx context.Context, opts ...async.TaskOption) {
		async.Repeat(ctx, async.Every(time.Second), func(context.Context) error { return nil }, async.Attempts(2), opts[0])
	},
	"daemon": func(ctx context.Context, opts ...async.TaskOption) {
		async.Go(ctx, tick, append(opts, async.Daemon())...)
	},
}

// TestWhenALeaderHasEndedTheOthersAreToldTo, and that is no failure.
func TestWhenALeaderHasEndedTheOthersAreToldTo(t *testing.T) {
	for name, lead := range waysToLead {
		for scope, opts := range map[string][]async.ScopeOption{
			"": nil, "Limit": {async.Limit(3)}, "DetachAfter": {async.DetachAfter(time.Hour)}, "On": {async.On(pool(func(task func()) error { go task(); return nil }))},
		} {
			t.Run(name+" "+scope, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					start := time.Now()
					causes := make(chan error, 2)
					waits := func(ctx context.Context) error {
						<-ctx.Done()
						causes <- context.Cause(ctx)
						return fmt.Errorf("told: %w", ctx.Err())
					}
					outcome := errPlanted
					err := async.Scope(ctx, func(ctx context.Context) error {
						async.OnExit(ctx, func(_ context.Context, err error) error { outcome = err; return nil })
						lead(ctx, async.Leader())
						async.Go(ctx, waits)
						async.Start(ctx, waits)
						return echoes(ctx)
					}, opts...)
					require.NoError(t, err)
					require.ErrorIs(t, outcome, async.ErrDismissed)
					require.Equal(t, async.Stopped, async.EndingOf(outcome))
					require.Equal(t, async.ErrDismissed, <-causes)
					require.Equal(t, async.ErrDismissed, <-causes)
					tookAbout(t, time.Second, start)
				})
			})
		}
	}
}

// TestWhatDoesNotCountWhenALeaderHasEnded is only that something was told to stop.
func TestWhatDoesNotCountWhenALeaderHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		want error
	}{
		"the body echoes":     {echoes, nil},
		"the cause":           {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, nil},
		"wrapped":             {func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("x: %w", context.Cause(ctx)) }, nil},
		"Sleep":               {func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, nil},
		"a wait":              {func(ctx context.Context) error { _, err := async.Start(ctx, echoes).Await(ctx, 0); return err }, nil},
		"a wait with a limit": {func(ctx context.Context) error { _, err := async.Start(ctx, echoes).Await(ctx, time.Hour); return err }, nil},
		"an inner scope": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, echoes); return nil })
		}, nil},
		"a race": {func(ctx context.Context) error {
			_, err := async.Race(ctx, obedient(0, 1, context.Canceled)).Await(ctx, 0)
			return err
		}, nil},
		"items": {func(ctx context.Context) error {
			return async.ForEach(ctx, endlessItems, func(ctx context.Context, _ int) error { return echoes(ctx) }, async.Limit(2))
		}, nil},
		"a poll": {func(ctx context.Context) error {
			_, err := async.Repeat(ctx, async.Every(time.Minute), idle).Await(ctx, 0)
			return err
		}, nil},
		"a daemon's error": {func(ctx context.Context) error {
			async.Go(ctx, failsWhenStopped(io.EOF), async.Daemon())
			return echoes(ctx)
		}, nil},
		"a body that succeeds": {func(ctx context.Context) error { <-ctx.Done(); return nil }, nil},
		"a task that was queued": {func(ctx context.Context) error {
			async.Go(ctx, echoes)
			async.Go(ctx, echoes)
			async.Start(ctx, echoes)
			return nil
		}, nil},
		"one on an executor": {func(ctx context.Context) error {
			async.Go(ctx, echoes, async.On(pool(func(func()) error { return nil })))
			return nil
		}, nil},
		"a promise": {func(ctx context.Context) error { f, _ := async.NewPromise[int](ctx); _, err := f.Wait(ctx); return err }, nil},

		"the body fails": {failsWhenStopped(io.EOF), io.EOF},
		"a task fails":   {func(ctx context.Context) error { async.Go(ctx, failsWhenStopped(io.EOF)); return echoes(ctx) }, io.EOF},
		"a future fails": {func(ctx context.Context) error { async.Start(ctx, failsWhenStopped(io.EOF)); return echoes(ctx) }, io.EOF},
		"a task of a scope fails": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, failsWhenStopped(io.EOF)); return nil })
		}, io.EOF},
		"an abort hook fails": {func(ctx context.Context) error {
			async.Go(ctx, echoes, async.OnAbort(func(context.Context, error) error { return io.EOF }))
			return nil
		}, io.EOF},
		"an exit hook fails": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return io.EOF })
			return echoes(ctx)
		}, io.EOF},
		"a task panics": {func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); panic(io.EOF) })
			return echoes(ctx)
		}, io.EOF},
		"a Timeout":      {func(ctx context.Context) error { return async.Shield(ctx, time.Minute, echoes) }, context.DeadlineExceeded},
		"a leader fails": {func(ctx context.Context) error { async.Go(ctx, failsWhenStopped(io.EOF), async.Leader()); return nil }, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, tick, async.Leader())
						return test.body(ctx)
					}, async.Limit(2))
				})
				if test.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, test.want)
				require.NotErrorIs(t, err, async.ErrDismissed)
			})
		})
	}
}

func endlessItems(yield func(int) bool) {
	for yield(1) {
	}
}

func idle(context.Context) error { return nil }

// TestTheFailureOfALeaderIsThatOfAnyTask.
func TestTheFailureOfALeaderIsThatOfAnyTask(t *testing.T) {
	for name, test := range map[string]struct {
		lead func(ctx context.Context)
		opts []async.ScopeOption
		want error // and the others are cancelled; nil: they go on
	}{
		"Go":              {lead: func(ctx context.Context) { async.Go(ctx, fail(io.EOF), async.Leader()) }, want: io.EOF},
		"panic":           {lead: func(ctx context.Context) { async.Go(ctx, plantPanic, async.Leader()) }, want: errPlanted},
		"its own Timeout": {lead: func(ctx context.Context) { async.Go(ctx, echoes, async.Leader(), async.Timeout(time.Second)) }, want: context.DeadlineExceeded},
		"a future that is given": {lead: func(ctx context.Context) {
			_, err := async.Start(ctx, fail(io.EOF), async.Leader()).Wait(ctx)
			require.Equal(t, io.EOF, err)
		}},
		"a cancelled future": {lead: func(ctx context.Context) { async.Start(ctx, echoes, async.Leader()).Cancel(io.EOF) }},
		"a rejected promise": {lead: func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx, async.Leader())
			p.Reject(io.EOF)
			_, _ = f.Wait(ctx)
		}},
		"OnFailure": {
			lead: func(ctx context.Context) { async.Go(ctx, fail(io.EOF), async.Leader()) },
			opts: []async.ScopeOption{async.OnFailure(func(error) error { return nil })},
		},
		"OnPanic": {
			lead: func(ctx context.Context) { async.Go(ctx, plantPanic, async.Leader()) },
			opts: []async.ScopeOption{async.OnPanic(carryOn)},
		},
		"a root task": {lead: func(context.Context) {
			root, _ := asynctest.Root(context.Background())
			_, _ = async.Start(root, tick, async.Leader()).Await(root, 0)
			require.NoError(t, root.Err())
		}},
		"a detached task": {lead: func(ctx context.Context) { async.Detach(ctx, "leader", tick, async.Leader()) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var other error
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error { other = async.Sleep(ctx, time.Minute); return nil })
						test.lead(ctx)
						return nil
					}, test.opts...)
				})
				if test.want == nil {
					require.NoError(t, other)
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, test.want)
				require.Error(t, other)
			})
		})
	}
}

func fail(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// TestALeaderThatEndsWhenItsScopeWasCancelledIsAnOrdinaryTask: what cancelled the
// scope is told as ever, also if it is the end of a leader further out.
func TestALeaderThatEndsWhenItsScopeWasCancelledIsAnOrdinaryTask(t *testing.T) {
	inner := func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, waitHook, async.Leader())
			async.Go(ctx, echoes)
			return nil
		})
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			own, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(io.EOF) })
			return inner(own)
		})
		require.ErrorIs(t, err, io.EOF)

		var told error
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, tick, async.Leader())
			told = inner(ctx)
			return told
		}))
		require.ErrorIs(t, told, async.ErrDismissed, "the inner scope was kept from what it did")
	})
}

// TestWhoWaitsForALeaderGetsItsValue, though its end ends the wait, too.
func TestWhoWaitsForALeaderGetsItsValue(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[int]) (int, error){
		"Await": func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Await(ctx, time.Hour) },
		"Wait":  func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Wait(ctx) },
		"derived ctx": func(ctx context.Context, f *async.Future[int]) (int, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return f.Wait(ctx)
		},
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) (int, error) {
			r := async.AwaitAll(ctx, 0, f)[0]
			return r.Value, r.Err
		},
		"by and by": func(ctx context.Context, f *async.Future[int]) (int, error) {
			<-ctx.Done()
			v, err, _ := f.Result()
			return v, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range fewer(500, 20) {
				value := 0
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f := async.Execute(ctx, answer, async.Leader())
					var err error
					value, err = wait(ctx, f)
					return err
				}, async.Limit(2)))
				require.NotZero(t, value)
			}
		})
	}
}

// TestOneOfManyLeadersLeads, however they race, also with a failure.
func TestOneOfManyLeadersLeads(t *testing.T) {
	for range fewer(2000, 50) {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for range 4 {
				async.Go(ctx, idle, async.Leader())
				async.Start(ctx, echoes)
			}
			return echoes(ctx)
		}, async.DetachAfter(time.Hour))
		require.NoError(t, err)
		err = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(ctx, fail(io.EOF))
			return echoes(ctx)
		})
		require.Equal(t, io.EOF, err)
	}
}

// TestALeaderInATaskLeadsThatTask: its handler is the body. One that is to give a
// value has none when it was cancelled.
func TestALeaderInATaskLeadsThatTask(t *testing.T) {
	handler := func(ctx context.Context) error {
		async.Go(ctx, tick, async.Leader())
		async.Go(ctx, echoes)
		return echoes(ctx)
	}
	value := func(ctx context.Context) (int, error) { return 0, handler(ctx) }
	for name, test := range map[string]struct {
		run  func(ctx context.Context) error
		want error
	}{
		"Go":    {func(ctx context.Context) error { async.Go(ctx, handler); return nil }, nil},
		"Start": {func(ctx context.Context) error { _, err := async.Start(ctx, handler).Await(ctx, 0); return err }, nil},
		"Restart": {func(ctx context.Context) error {
			async.Go(ctx, handler, async.Restart(async.RestartPolicy{Interval: async.Every(1)}))
			return nil
		}, nil},
		"Shield": {func(ctx context.Context) error { return async.Shield(ctx, time.Hour, handler) }, nil},
		"exit hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return handler(ctx) })
			return nil
		}, nil},
		"Execute": {func(ctx context.Context) error { _, err := async.Execute(ctx, value).Await(ctx, 0); return err }, async.ErrDismissed},
		"Execute, Restart": {func(ctx context.Context) error {
			_, err := async.Execute(ctx, value, async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 1})).Await(ctx, 0)
			return err
		}, async.ErrDismissed},
		"All": {func(ctx context.Context) error { _, err := async.All(ctx, value).Await(ctx, 0); return err }, async.ErrDismissed},
		"ForkJoin": {func(ctx context.Context) error {
			all, err := async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return value(ctx) }).Await(ctx, 0)
			return errors.Join(err, all[0].Err)
		}, async.ErrDismissed},
		"Race without a value": {func(ctx context.Context) error {
			_, err := async.Race(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, handler(ctx) }).Await(ctx, 0)
			return err
		}, nil},
		"ForEach": {func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2, 3}), func(ctx context.Context, _ int) error { return handler(ctx) }, async.Limit(2))
		}, nil},
		"Map": {func(ctx context.Context) (err error) {
			for _, e := range async.Map(ctx, slices.Values([]int{1, 2, 3}), func(ctx context.Context, _ int) (int, error) { return value(ctx) }) {
				err = errors.Join(err, e)
			}
			return err
		}, async.ErrDismissed},
		"a value": {func(ctx context.Context) error {
			v, err := async.Execute(ctx, func(ctx context.Context) (int, error) { _ = handler(ctx); return 7, nil }).Await(ctx, 0)
			require.Equal(t, 7, v)
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					err := test.run(ctx)
					require.NoError(t, ctx.Err(), "this scope has no leader")
					return err
				})
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.want)
				}
			})
		})
	}
}

func TestALeaderEndsAGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Go(echoes))
		require.NoError(t, g.Go(tick, async.Leader()))
		<-g.Context().Done()
		require.Equal(t, async.ErrDismissed, context.Cause(g.Context()))
		require.NoError(t, g.Stop(ctx, io.EOF))
	})
}

// TestADaemonThatWasToldThatItsScopeIsDoneLeadsNobody: the scope has ended well, and
// its context says so.
func TestADaemonThatWasToldThatItsScopeIsDoneLeadsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var own context.Context
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			own = ctx
			async.OnExit(ctx, func(context.Context, error) error { require.NoError(t, own.Err()); return nil })
			async.Go(ctx, waitHook, async.Leader(), async.Daemon())
			async.Start(ctx, waitHook, async.Leader(), async.Daemon())
			return nil
		}))
	})
}

func TestWhatWithoutCancelProtectsOutlivesItsLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var wrote error = errPlanted
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error { wrote = async.Sleep(ctx, time.Minute); return wrote })
			return nil
		}))
		require.NoError(t, wrote)
	})
}

func TestALeaderAndAChannelMayMeet(t *testing.T) {
	for range fewer(2000, 50) {
		ch := make(chan struct{})
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(ctx, func(context.Context) error { close(ch); return nil })
			return echoes(ctx)
		}, async.StopOn(ch, io.EOF))
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		require.NotErrorIs(t, err, async.ErrDismissed)
	}
}
