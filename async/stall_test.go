package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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

// TestWhoIsLeftIsNamedWherever it stands: the body itself, also one that starts
// a task later, and a task of an inner scope.
func TestWhoIsLeftIsNamedWherever(t *testing.T) {
	stays := func(context.Context) error { time.Sleep(time.Hour); return nil }
	starts := func(ctx context.Context) error { async.Go(ctx, stays, async.Name("culprit")); return nil }
	inner := func(ctx context.Context) error { return async.Scope(ctx, starts) }
	var told atomic.Pointer[async.StragglerError]
	stall := async.OnStall(time.Second, func(e *async.StragglerError) {
		if told.Swap(e) != nil {
			panic("called twice")
		}
	})
	detach := async.DetachAfter(time.Second)
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		opts []async.ScopeOption
	}{
		"body":                    {stays, []async.ScopeOption{stall, async.Name("culprit")}},
		"started late":            {func(ctx context.Context) error { time.Sleep(2 * time.Second); return starts(ctx) }, []async.ScopeOption{stall, async.Name("culprit")}},
		"in an inner scope":       {inner, []async.ScopeOption{stall}},
		"of a sibling":            {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{stall}},
		"of a sibling, let go of": {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{detach}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				told.Store(nil)
				cancelled, cancel := context.WithCancel(ctx)
				cancel()
				err := async.Scope(cancelled, test.body, test.opts...)
				left := told.Load()
				if left == nil {
					require.ErrorAs(t, err, &left)
				}
				var names []string
				for _, l := range left.Left {
					names = append(names, l.Task)
				}
				require.Contains(t, strings.Join(names, " "), "culprit")
				time.Sleep(2 * time.Hour)
			})
		})
	}
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

// TestAStragglerIsNamedWhoseHandlerHasReturned: its value is being discarded.
func TestAStragglerIsNamedWhoseHandlerHasReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Execute(ctx, func(context.Context) (int, error) { return 1, nil },
					async.OnDiscard(func(int) { time.Sleep(time.Minute) }))
				return nil
			}, async.Name("discards"))
			return errPlanted
		}, async.DetachAfter(time.Second))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "discards", left.Left[0].Task)
		time.Sleep(time.Minute)
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

// This file is about what becomes of what a scope has left behind, and of those who
// have opened it.

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

// A call of OnStall is nobody who is left behind: it is waited for, for as long as a
// hook may take.
func TestAScopeDoesNotLeaveACallOfOnStallBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		require.Equal(t, errPlanted, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(4 * time.Second) })))
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// One that has overrun its time is a straggler as any other.
func TestACallOfOnStallThatTakesTooLongIsLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(time.Minute) }))
		require.Equal(t, 6*time.Second, time.Since(begin))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Contains(t, left.Left[0].Task, "stall hook")
		time.Sleep(time.Minute)
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

// The scope returns without its tasks after OnStall was found to be due, and before it
// is called.
func TestOnStallIsNotCalledIfScopeReturnsMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var looks atomic.Int32
		var returned, late atomic.Bool
		stopped, stop := context.WithCancelCause(ctx)
		tell := func(*async.StragglerError) { late.Store(late.Load() || returned.Load()) }
		err := async.Scope(staleCtx{stopped, func() {
			if time.Since(begin) < time.Second {
				return
			}
			if looks.Add(1) == 2 { // OnStall looks who is left
				stop(errPlanted)
				time.Sleep(time.Millisecond)
			}
		}}, func(ctx context.Context) error {
			async.Go(ctx, sleeps(time.Hour))
			return nil
		}, async.OnStall(time.Second, tell), async.DetachAfter(0))
		returned.Store(true)
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.GreaterOrEqual(t, looks.Load(), int32(2))
		time.Sleep(2 * time.Hour)
		require.False(t, late.Load())
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

// A stallRecord keeps what OnStall was told.
type stallRecord struct {
	mu    sync.Mutex
	begin time.Time
	told  []string
	last  *async.StragglerError
}

func newStallRecord() *stallRecord { return &stallRecord{begin: time.Now()} }

func (r *stallRecord) after(d time.Duration) async.ScopeOption {
	return async.OnStall(d, func(e *async.StragglerError) {
		r.mu.Lock()
		defer r.mu.Unlock()
		line := fmt.Sprintf("%v %v:", time.Since(r.begin), e.Cause)
		for _, s := range e.Left {
			line += " " + s.Task
		}
		r.told, r.last = append(r.told, line), e
	})
}

func sleeps(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// TestOnStallIsCalledAfterTheBodyAndAfterTheCancellation, once for each, while
// anybody is left.
func TestOnStallIsCalledAfterTheBodyAndAfterTheCancellation(t *testing.T) {
	const second = time.Second
	for name, tc := range map[string]struct {
		body func(ctx context.Context) error
		want []string
	}{
		"nobody is left": {
			func(ctx context.Context) error { async.Go(ctx, sleeps(second/2), async.Name("short")); return nil },
			nil,
		},
		"a loop that nobody told to stop": {
			func(ctx context.Context) error { async.Go(ctx, sleeps(9*second), async.Name("loop")); return nil },
			[]string{"1s <nil>: loop"},
		},
		"a slow body is no stall": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				time.Sleep(3 * second)
				return nil
			},
			[]string{"4s <nil>: loop"},
		},
		"cancelled later": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				async.Go(ctx, func(context.Context) error { time.Sleep(5 * second); return errPlanted }, async.Name("fails"))
				return nil
			},
			[]string{"1s <nil>: loop fails", "6s planted: loop"},
		},
		"cancelled at once": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				return errPlanted
			},
			[]string{"1s planted: loop"},
		},
		"cancelled between": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				async.Go(ctx, func(context.Context) error { time.Sleep(second / 2); return errPlanted })
				return nil
			},
			[]string{"1.5s planted: loop"},
		},
		"the body is left": {
			func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				time.Sleep(3 * second)
				return nil
			},
			[]string{"1s planted: culprit"},
		},
		"an exit hook is left": {
			func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { time.Sleep(3 * second); return nil })
				return nil
			},
			[]string{"1s <nil>: exit hook of culprit"},
		},
		"a daemon waits for the others": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("daemon"), async.Daemon())
				async.Go(ctx, sleeps(2*second), async.Name("loop"))
				return nil
			},
			[]string{"1s <nil>: loop"},
		},
		"only a daemon is left": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("daemon"), async.Daemon())
				return nil
			},
			[]string{"1s <nil>: daemon"},
		},
		"inner scopes and what they have started": {
			func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, sleeps(9*second), async.Name("first"))
						async.Go(ctx, sleeps(9*second), async.Name("second"))
						return nil
					}, async.Name("inner"))
				}, async.Name("outer"))
				async.Go(ctx, sleeps(9*second), async.Name("third"))
				return nil
			},
			[]string{"1s <nil>: outer first second third"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				r := newStallRecord()
				_ = async.Scope(ctx, tc.body, r.after(second), async.Name("culprit"))
				require.Equal(t, tc.want, r.told)
				if r.last != nil {
					left := r.last.Left
					require.Contains(t, left[len(left)-1].Stack, "time.Sleep")
				}
			})
		})
	}
}

// TestOnStallIsNotCalledOnceScopeHasReturned without its tasks.
func TestOnStallIsNotCalledOnceScopeHasReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(time.Minute))
			return errPlanted
		}, r.after(2*time.Second), async.DetachAfter(time.Second))
		require.ErrorAs(t, err, new(*async.StragglerError))
		time.Sleep(time.Minute)
		require.Empty(t, r.told)
	})
}

// TestAStallIsToldWhileAnEarlierOneIs: a slow hook is not who is left.
func TestAStallIsToldWhileAnEarlierOneIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		calls := 0
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return nil
		}, async.OnStall(time.Second, func(e *async.StragglerError) {
			calls++
			require.Len(t, e.Left, 1)
			time.Sleep(time.Minute)
		})))
		require.Equal(t, 1, calls)
	})
}

// TestManyScopesThatStallAtOnceShareALookAtTheStacks: a look stops the world for
// as long as there are goroutines. Two hundred looks took 5 to 12 s.
func TestManyScopesThatStallAtOnceShareALookAtTheStacks(t *testing.T) {
	const n = 200
	for name, option := range map[string]func(chan<- error) async.ScopeOption{
		"OnStall": func(told chan<- error) async.ScopeOption {
			return async.OnStall(time.Millisecond, func(e *async.StragglerError) { told <- e })
		},
		"DetachAfter": func(chan<- error) async.ScopeOption { return async.DetachAfter(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(asynctest.Context(t))
			told, release := make(chan error, 2*n), make(chan struct{})
			before := async.Looks()
			var scopes, run sync.WaitGroup
			run.Add(n)
			for i := range n {
				scopes.Go(func() {
					err := async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { run.Done(); <-release; return nil }, async.Name(fmt.Sprint("task ", i)))
						<-ctx.Done()
						return nil
					}, option(told))
					if errors.As(err, new(*async.StragglerError)) {
						told <- err
					}
				})
			}
			run.Wait() // a goroutine that has not run yet has no stack
			stop()
			for range n {
				var e *async.StragglerError
				require.ErrorAs(t, <-told, &e)
				require.Contains(t, e.Left[0].Task, "task") // the body may be slow to end, too
				require.Contains(t, e.Left[0].Stack, "stall_test.go")
			}
			require.Less(t, async.Looks()-before, int64(n/4))
			close(release)
			scopes.Wait()
		})
	}
}

// TestAStragglersStackIsItsOwn also if it was started when others had just
// stalled, and in another bubble at the same time of its clock.
func TestAStragglersStackIsItsOwn(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			for range 3 {
				for name, wait := range map[string]func(){"waitHere": waitHere, "waitThere": waitThere} {
					var told *async.StragglerError
					_ = async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { wait(); return nil })
						return errPlanted
					}, async.OnStall(time.Nanosecond, func(e *async.StragglerError) { told = e }))
					require.NotNil(t, told)
					require.Contains(t, told.Left[0].Stack, name)
				}
			}
		})
	}
}

//go:noinline
func waitHere() { time.Sleep(2 * time.Nanosecond) }

//go:noinline
func waitThere() { time.Sleep(2 * time.Nanosecond) }

func TestMoreThan32StragglersAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for i := range 100 {
				async.Go(ctx, sleeps(time.Minute), async.Name(fmt.Sprint("task ", i)))
			}
			return nil
		}, r.after(time.Second)))
		require.Len(t, r.last.Left, 32)
		require.Equal(t, 68, r.last.More)
		require.Equal(t, "task 0", r.last.Left[0].Task)
		require.Equal(t, "task 31", r.last.Left[31].Task)
	})
}
