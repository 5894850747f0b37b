package async_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The tests here show how a scope leaves tasks behind, how those tasks go on, and what their owners see.

func TestAFailureAndAStragglerMakeAScopeError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(4 * time.Second); return nil })
			return errPlanted
		}, async.DetachAfter(time.Second))
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, errPlanted, list.Errors[0])
		require.ErrorAs(t, err, new(*async.StragglerError))
	})
}

func TestWhatDetachAfterHasToldIsNotReportedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(3 * time.Second); return io.EOF })
			return errPlanted
		}, async.DetachAfter(time.Second))
		err := check()
		require.ErrorIs(t, err, io.EOF)
		require.NotContains(t, err.Error(), errPlanted.Error())
	})
}

// slowIs is an error that takes a while to be compared, so that a task can come
// home while its scope sums up.
type slowIs struct{ on *atomic.Bool }

func (slowIs) Error() string { return "slow" }

func (e slowIs) Is(error) bool {
	if e.on.Load() {
		time.Sleep(time.Second)
	}
	return false
}

func TestNothingIsReportedTwiceWhenTheLastComesHomeAsDetachAfterPasses(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		on := new(atomic.Bool)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(1500 * time.Millisecond); on.Store(false); return nil })
			async.OnExit(ctx, func(context.Context, error) error { return nil })
			time.AfterFunc(900*time.Millisecond, func() { on.Store(true) })
			return slowIs{on}
		}, async.DetachAfter(time.Second))
		on.Store(false)
		require.ErrorAs(t, err, new(slowIs))
		require.NoError(t, check())
	})
}

func TestDetachAfterNeedsNoSlotToReturn(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			start := time.Now()
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				return nil
			}, async.Timeout(time.Second), async.DetachAfter(time.Second))
			var left *async.StragglerError
			require.ErrorAs(t, err, &left)
			tookAbout(t, 2*time.Second, start)
			time.Sleep(2 * time.Hour)
			return nil
		})
		return nil
	})
}

func TestAStragglerThatWasLetGoMayAwaitItsOldTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			self := make(chan *async.Future[int], 1)
			f := async.Execute(ctx, func(ctx context.Context) (int, error) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						time.Sleep(time.Minute)
						v, err := (<-self).Wait(context.WithoutCancel(ctx))
						require.Equal(t, 1, v)
						return err
					})
					return nil
				}, async.Timeout(time.Second), async.DetachAfter(time.Second))
				time.Sleep(time.Hour)
				return 1, nil
			})
			self <- f
			_, err := f.Await(ctx, 0)
			return err
		}))
	})
}

// TestDetachAfterCountsFromAnExitHookThatOverruns in a scope that was not cancelled.
func TestDetachAfterCountsFromAnExitHookThatOverruns(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		start := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Hour); return nil })
			return nil
		}, async.HookTimeout(2*time.Second), async.DetachAfter(time.Second), async.Name("deploy"))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "exit hook of deploy", left.Left[0].Task)
		require.Equal(t, 3*time.Second, time.Since(start))
		time.Sleep(time.Hour)
		require.ErrorAs(t, check(), new(*async.TimeoutError))
	})
}

// A daemon that was left behind, and that the end of its scope has not cancelled, is
// told to go when only daemons are left.
func TestADaemonThatWasLeftIsDismissed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var went atomic.Int64
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
				<-ctx.Done()
				if context.Cause(ctx) == async.ErrDismissed {
					went.Store(int64(time.Since(begin)))
				}
				return nil
			}, async.Daemon(), async.Name("daemon"))
			async.Go(ctx, sleeps(time.Hour), async.Name("straggler"))
			return errPlanted
		}, async.DetachAfter(time.Second))
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.Equal(t, time.Second, time.Since(begin))
		time.Sleep(2 * time.Hour)
		require.Equal(t, int64(time.Hour), went.Load(), "when it went")
		require.Empty(t, asynctest.Live(ctx))
	})
}

// A task that is left behind lends no slot of the task that has gone on without it.
func TestTheEndOfWhatWasLeftLendsNobodysSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var running, most atomic.Int32
		runs := func(d time.Duration) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(d)
			running.Add(-1)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Second); return nil })
					async.Go(context.WithoutCancel(ctx), sleeps(time.Hour)) // which has the slot while Scope waits
					return errPlanted
				}, async.DetachAfter(time.Second))
				require.ErrorAs(t, err, new(*async.StragglerError))
				async.Go(ctx, func(context.Context) error { runs(time.Hour); return nil })
				runs(2 * time.Hour)
				return nil
			})
			return nil
		}, async.Limit(1)))
		require.Equal(t, int32(1), most.Load(), "tasks that ran at once")
	})
}

// A staleCtx calls asked whenever Err of it is, and says what was so before.
type staleCtx struct {
	context.Context
	asked func()
}

func (c staleCtx) Err() error {
	err := c.Context.Err()
	c.asked()
	return err
}

// A scope that has returned without its tasks is over for everybody else: its context is
// cancelled, and what is left holds no slot of a limit further out, nor does what that starts.
func TestAScopeThatHasReturnedWithoutItsTasksIsOverForOthers(t *testing.T) {
	hang := func(context.Context, error) error { time.Sleep(time.Hour); return nil }
	for name, body := range map[string]func(ctx context.Context) error{
		"cancelled": func(ctx context.Context) error {
			for range 3 { // all but one queue, and still do when the scope has returned
				async.Go(context.WithoutCancel(ctx), sleeps(10*time.Minute))
			}
			return errPlanted
		},
		"one starts another later": func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				async.Go(ctx, sleeps(time.Hour))
				return nil
			})
			return errPlanted
		},
		"one is in a discard hook": func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
				f := async.Execute(ctx, func(context.Context) (int, error) { return 1, nil }, async.OnDiscard(func(int) { time.Sleep(time.Hour) }))
				_ = async.Sleep(ctx, time.Millisecond)
				<-f.Done()
				return nil
			})
			time.Sleep(10 * time.Millisecond)
			return errPlanted
		},
		"an exit hook has overrun": func(ctx context.Context) error {
			async.OnExit(ctx, hang)
			return nil
		},
		"an exit hook has overrun beside a task": func(ctx context.Context) error {
			async.OnExit(ctx, func(hook context.Context, _ error) error {
				async.Go(ctx, func(context.Context) error { return hang(hook, nil) })
				return hang(hook, nil)
			})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				began := time.Now()
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						var within context.Context
						err := async.Scope(ctx, func(ctx context.Context) error {
							within = ctx
							return body(ctx)
						}, async.DetachAfter(time.Second), async.HookTimeout(time.Second))
						require.ErrorAs(t, err, new(*async.StragglerError))
						require.Error(t, within.Err())
						return async.Sleep(ctx, 5*time.Second)
					})
					async.Go(ctx, sleeps(3*time.Second))
					return nil
				}, async.Limit(1)))
				require.Less(t, time.Since(began), time.Minute)
				time.Sleep(2 * time.Hour)
				_ = check()
			})
		})
	}
}

// A peak counts how many run at once.
type peak struct{ now, most atomic.Int32 }

func (p *peak) run(context.Context) error {
	n := p.now.Add(1)
	for m := p.most.Load(); n > m && !p.most.CompareAndSwap(m, n); m = p.most.Load() {
	}
	time.Sleep(time.Minute)
	p.now.Add(-1)
	return nil
}

// The limits of what is left behind go on: that of its scope, and those inside it.
func TestWhatIsLeftBehindKeepsItsOwnLimits(t *testing.T) {
	for name, test := range map[string]struct {
		start func(ctx context.Context, p *peak)
		opts  []async.ScopeOption
	}{
		"of the scope": {func(ctx context.Context, p *peak) {
			for range 50 {
				async.Go(context.WithoutCancel(ctx), p.run)
			}
		}, []async.ScopeOption{async.Limit(2)}},
		"of a scope inside it": {func(ctx context.Context, p *peak) {
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					for range 50 {
						async.Go(ctx, p.run)
					}
					return nil
				}, async.Limit(2))
			})
			time.Sleep(time.Millisecond)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				var p peak
				_ = async.Scope(ctx, func(ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error {
						test.start(ctx, &p)
						return errPlanted
					}, append(test.opts, async.DetachAfter(time.Second))...)
				}, async.Limit(3))
				time.Sleep(2 * time.Hour)
				require.Equal(t, int32(2), p.most.Load())
				_ = check()
			})
		})
	}
}

// Tasks that a scope has left behind may use it to the end: exit hooks start tasks in it, and the abort
// hooks of its promises are called.
func TestWhatIsLeftBehindMayUseItsScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		var rolledBack, aborted atomic.Bool
		require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(hook context.Context, _ error) error {
				_, err := async.Start(context.WithoutCancel(ctx), func(context.Context) error { rolledBack.Store(true); return nil }).Join(hook)
				return err
			})
			async.NewPromise[int](context.WithoutCancel(ctx), async.Timeout(10*time.Second),
				async.OnAbort(func(context.Context, error) error { aborted.Store(true); return nil }))
			async.Go(ctx, sleeps(time.Minute))
			return errPlanted
		}, async.DetachAfter(time.Second)))
		time.Sleep(2 * time.Hour)
		require.True(t, aborted.Load(), "the abort hook of the promise")
		require.True(t, rolledBack.Load(), "the task of the exit hook")
		require.ErrorContains(t, check(), "promise: nobody awaited it")
	})
}

// A panic that comes when Scope has returned is the root's, once.
func TestAPanicOfWhatIsLeftBehindIsToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(2 * time.Second); panic("late") }, async.Name("p"))
			async.Go(ctx, sleeps(time.Minute))
			return errPlanted
		}, async.DetachAfter(time.Second)))
		time.Sleep(time.Hour)
		require.Equal(t, 1, strings.Count(check().Error(), "panic in p: late"))
	})
}

// TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong, after which the others run.
func TestDetachAfterLetsGoOfAnExitHookThatTakesTooLong(t *testing.T) {
	for name, tc := range map[string]struct {
		detach, want time.Duration
	}{
		"when its time is up": {2 * time.Second, 5 * time.Second},
		"when it is late":     {7 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(ctx)
				begin := time.Now()
				var others []time.Duration
				note := func(context.Context, error) error { others = append(others, time.Since(begin)); return nil }
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, note)
					async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Minute); return nil })
					async.OnExit(ctx, note)
					return errPlanted
				}, async.DetachAfter(tc.detach), async.Name("scope"))
				require.Equal(t, tc.want, time.Since(begin))
				var left *async.StragglerError
				require.ErrorAs(t, err, &left)
				require.Equal(t, "exit hook of scope", left.Left[0].Task)
				require.Contains(t, left.Left[0].Stack, "time.Sleep")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []time.Duration{0, time.Minute}, others)
				require.ErrorContains(t, check(), "exit hook of scope", "the root is told that it was late")
			})
		})
	}
}

func TestDetachAfterLetsGoOfStragglersOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		exited := make(chan struct{})
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { close(exited); return nil })
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("stubborn"))
			return errPlanted
		}, async.DetachAfter(time.Second), async.Name("outer"))
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, err, errPlanted)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep")
		require.Equal(t, []string{"outer"}, asynctest.Live(ctx))
		<-exited // only now, after the last of them
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

// A raised panic that passes a scope which lets a straggler go: what failed beside it is told, and who is left.
func TestARaisedPanicPassesDetachAfter(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errSecond })
			async.Go(ctx, onStop(rows))
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { panic("boom") })
				return nil
			})
		}, async.DetachAfter(time.Second))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := r.all() + fmt.Sprintf("%+v", p)
		for _, want := range []string{errSecond.Error(), rows, "still running"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%q was told %d times:\nroot: %s\npanic: %+v", want, strings.Count(all, want), r.all(), p)
			}
		}
	})
}

// TestAPanicAfterDetachAfterIsAskedAbout, though Scope has returned: the root is
// told only of what counts.
func TestAPanicAfterDetachAfterIsAskedAbout(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				root, check := asynctest.Root(ctx)
				err := async.Scope(root, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); panic(errPlanted) })
					return io.ErrClosedPipe
				}, async.DetachAfter(time.Second), async.OnPanic(func(*async.PanicError) error { return answer }))
				require.ErrorIs(t, err, io.ErrClosedPipe)
				time.Sleep(2 * time.Hour)
				if answer == nil {
					require.NoError(t, check())
				} else {
					require.ErrorIs(t, check(), answer)
				}
			})
		})
	}
}
