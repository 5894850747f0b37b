package async_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

// limitedOn are the executors under which what is started in a limited scope
// may run; nil is none.
var limitedOn = map[string]func() async.Executor{
	"goroutines": func() async.Executor { return pool(func(task func()) error { go task(); return nil }) },
	"inline":     func() async.Executor { return pool(func(task func()) error { task(); return nil }) },
	"one slot":   func() async.Executor { return oneSlot() },
	"never full": func() async.Executor {
		return tryPool{nil, func(task func()) bool { go task(); return true }}
	},
	"refusing": func() async.Executor { return pool(func(func()) error { return errFull }) },
}

func TestAStartWithADoneContextUnderALimitAndOnTakesNoSlot(t *testing.T) {
	for name, executor := range limitedOn {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					done, stop := context.WithCancelCause(ctx)
					stop(errLimitWhy)
					for range 3 {
						f := async.Execute(done, func(context.Context) (int, error) { t.Error("ran"); return 1, nil })
						_, err := f.Wait(ctx)
						require.ErrorIs(t, err, errLimitWhy)
					}
					if name == "refusing" {
						return nil
					}
					f := async.Execute(ctx, answer)
					_, err := f.Await(ctx, time.Minute)
					require.NoError(t, err, "every slot is there")
					return nil
				}, async.Limit(1), async.On(executor())))
			})
		})
	}
}

func TestStartsInACancelledScopeUnderALimitAndOnSettleWithItsCause(t *testing.T) {
	boom := errors.New("boom")
	for name, executor := range limitedOn {
		if name == "refusing" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { return boom })
					<-ctx.Done()
					for range 3 {
						f := async.Execute(ctx, func(context.Context) (int, error) { t.Error("ran"); return 1, nil })
						<-f.Done() // whoever cancels the scope may have found it first, and settles it
						_, err, _ := f.Result()
						require.ErrorIs(t, err, boom)
						async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil })
					}
					return nil
				}, async.Limit(1), async.On(executor()))
				require.ErrorIs(t, err, boom)
			})
		})
	}
}

// TestACancellationAtAnyPointOfTheWayToAnExecutorLosesNoSlot: the executor
// decides when it begins, so each point can be met.
func TestACancellationAtAnyPointOfTheWayToAnExecutorLosesNoSlot(t *testing.T) {
	for _, cancel := range []string{"as it queues", "before it is begun", "after its slot was recalled", "while it waits for its slot again"} {
		t.Run(cancel, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var accepted []func()
				keeps := pool(func(task func()) error {
					mu.Lock()
					defer mu.Unlock()
					accepted = append(accepted, task)
					return nil
				})
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					var f *async.Future[int]
					first := async.Start(ctx, func(own context.Context) error {
						f = async.Execute(own, func(context.Context) (int, error) { t.Error("ran"); return 1, nil }, async.On(keeps))
						if cancel == "as it queues" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						if cancel == "before it is begun" {
							time.AfterFunc(time.Millisecond, func() { f.Cancel(errLimitWhy) })
						}
						// Lends its slot to f, which goes to the executor with it.
						require.NoError(t, async.Sleep(own, time.Second))
						if cancel == "after its slot was recalled" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						mu.Lock()
						for _, task := range accepted {
							go task()
						}
						mu.Unlock()
						synctest.Wait()
						if cancel == "while it waits for its slot again" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						synctest.Wait()
						require.Equal(t, async.StateDone, f.State())
						return nil
					})
					_, err := first.Wait(ctx)
					require.NoError(t, err)
					_, err, ok := f.Result()
					require.True(t, ok)
					require.ErrorIs(t, err, errLimitWhy)
					_, err = async.Execute(ctx, answer).Await(ctx, time.Minute)
					require.NoError(t, err, "the slot is there")
					return nil
				}, async.Limit(1)))
			})
		})
	}
}

// TestTasksComeBackThoughThePoolHasNoPlaceForThoseThatFollow: tasks that wait keep
// their places in the pool. No slot may be held by a task that has none yet.
func TestTasksComeBackThoughThePoolHasNoPlaceForThoseThatFollow(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				places := make(chan struct{}, 2*n)
				ex := pool(func(task func()) error {
					places <- struct{}{}
					go func() {
						defer func() { <-places }()
						task()
					}()
					return nil
				})
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					for range 10 * n {
						async.Go(ctx, func(ctx context.Context) error {
							return async.Sleep(ctx, time.Second)
						})
					}
					return nil
				}, async.Limit(n), async.On(ex)))
			})
		})
	}
}

func TestATaskThatItsExecutorRefusesGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for _, refuse := range []pool{
				func(func()) error { return errFull },
				func(func()) error { panic(errFull) },
			} {
				_, err := async.Execute(ctx, answer, async.On(refuse)).Await(ctx, time.Minute)
				var rejected *async.RejectedError
				require.ErrorAs(t, err, &rejected)
				_, err = async.Execute(ctx, answer).Await(ctx, time.Minute)
				require.NoError(t, err)
			}
			return nil
		}, async.Limit(1)))
	})
}

// A queued task is cancelled by its own ctx and by nothing else.

func TestAQueuedTaskUnderWithoutCancelRunsAlthoughItsScopeWasCancelled(t *testing.T) {
	stop := errors.New("stop")
	for name, on := range map[string][]async.ScopeOption{
		"alone":          {async.Limit(1)},
		"on an executor": {async.Limit(1), async.On(pool(func(task func()) error { go task(); return nil }))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					for range 3 {
						async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
							require.NoError(t, ctx.Err())
							ran++
							return async.Sleep(ctx, time.Second)
						})
						async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil })
					}
					// The scope is cancelled before a slot is free.
					time.AfterFunc(time.Minute, func() { close(gate) })
					return stop
				}, on...)
				require.ErrorIs(t, err, stop)
				require.Equal(t, 3, ran)
			})
		})
	}
}

func TestAQueuedTaskUnderAnEndedTimeoutIsSettledThoughItsScopeGoesOn(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f := async.Execute(brief, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
		start := time.Now()
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Second, start)
		return nil
	})
}

// TestASlotIsNotGivenToATaskWhoseContextIsDone: the context is done before the
// slot is free, though nobody may have come to take the task out of the queue.
func TestASlotIsNotGivenToATaskWhoseContextIsDone(t *testing.T) {
	for name, derive := range map[string]func(ctx context.Context) (context.Context, func()){
		"derived": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		},
		"beside": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			return ctx, cancel
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3_000 / raceFactor {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					gate := make(chan struct{})
					async.Go(ctx, func(context.Context) error { <-gate; return nil })
					under, cancel := derive(ctx)
					f := async.Execute(under, func(context.Context) (int, error) { t.Error("ran"); return 0, nil })
					cancel()
					close(gate)
					_, err := f.Wait(ctx)
					require.ErrorIs(t, err, context.Canceled)
					return nil
				}, async.Limit(1))
				require.NoError(t, err)
			}
		})
	}
}

// TestAnAwaitCutShortReturnsAtOnceAndTheNextFreeSlotPays: a has lent its slot
// to b and comes back while b runs on. Then two run with Limit(1), and c has
// to wait until both have gone.
func TestAnAwaitCutShortReturnsAtOnceAndTheNextFreeSlotPays(t *testing.T) {
	for name, await := range map[string]func(ctx context.Context, f *async.Future[int]) error{
		"Await, its limit": func(ctx context.Context, f *async.Future[int]) error {
			_, err := f.Await(ctx, time.Second)
			return err
		},
		"Await, its context": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Await(ctx, 0)
			return err
		},
		"Wait, its context": func(ctx context.Context, f *async.Future[int]) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Wait(ctx)
			return err
		},
		"AwaitAll, its limit": func(ctx context.Context, f *async.Future[int]) error {
			return async.AwaitAll(ctx, time.Second, async.Completed(1, nil), f)[1].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				start := time.Now()
				at := func() time.Duration { return time.Since(start).Truncate(time.Microsecond) }
				var b, c *async.Future[time.Duration]
				a := async.Execute(ctx, func(ctx context.Context) (time.Duration, error) {
					inner := async.Execute(ctx, stubborn(10*time.Second, 1, nil))
					err := await(ctx, inner)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					back := at()
					time.Sleep(19 * time.Second)
					return back, nil
				})
				c = async.Execute(ctx, func(context.Context) (time.Duration, error) { return at(), nil })
				b = async.Execute(ctx, func(context.Context) (time.Duration, error) { return at(), nil })
				got := async.AwaitAll(ctx, 0, a, c, b)
				for _, r := range got {
					require.NoError(t, r.Err)
				}
				require.Equal(t, time.Second, got[0].Value, "on time, although no slot was free")
				require.Equal(t, 20*time.Second, got[1].Value, "the slot that became free at 10 s paid")
				require.Equal(t, 20*time.Second, got[2].Value)
				return nil
			})
		})
	}
}

func TestManyCutShortWaitsPayEverySlot(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var c runCount
			limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
				for range 50 {
					async.Go(ctx, func(ctx context.Context) error {
						f := async.Execute(ctx, stubborn(3*time.Second, 0, nil))
						_, _ = f.Await(ctx, time.Second)
						_, _ = f.Await(ctx, time.Second)
						_, err := f.Await(ctx, 0)
						return err
					})
				}
				return nil
			})
			limitedScope(t, n, func(t *testing.T, ctx context.Context) error {
				// Debts of an earlier stretch are paid, neither forgotten nor
				// paid twice: afterwards exactly n run.
				err := async.Scope(ctx, func(ctx context.Context) error {
					for range 20 {
						async.Go(ctx, func(ctx context.Context) error {
							_, _ = async.Execute(ctx, stubborn(3*time.Second, 0, nil)).Await(ctx, time.Second)
							return nil
						})
					}
					return nil
				})
				start := time.Now()
				for range 4 * n {
					async.Go(ctx, func(context.Context) error {
						c.enter()
						defer c.out()
						time.Sleep(time.Second)
						return nil
					})
				}
				async.OnExit(ctx, func(context.Context, error) error { tookAbout(t, 4*time.Second, start); return nil })
				return err
			})
			require.EqualValues(t, n, c.most.Load())
		})
	}
}

// TestLimitUnderFire: waits cut short, cancelled queues and nested scopes on
// real threads. At the end every slot must be there.
func TestNoSlotIsLostUnderFire(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				for round := range 20 {
					err := async.Scope(ctx, func(ctx context.Context) error {
						for i := range 100 {
							async.Go(ctx, func(ctx context.Context) error {
								f := async.Execute(ctx, func(ctx context.Context) (int, error) {
									for range (i + round) % 5 {
										runtime.Gosched()
									}
									g := async.Execute(ctx, answer)
									_, _ = g.Await(ctx, time.Duration(i%3))
									return 1, nil
								})
								switch i % 4 {
								case 0:
									f.Cancel(errLimitWhy)
								case 1:
									brief, cancel := context.WithCancel(ctx)
									go cancel()
									_, _ = f.Wait(brief)
								case 2:
									_, _ = f.Await(ctx, 1)
								}
								_, _ = f.Wait(ctx)
								return nil
							})
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				var c runCount
				var meet sync.WaitGroup // all n slots must be there: n tasks meet
				meet.Add(n)
				for range n {
					async.Go(ctx, func(context.Context) error {
						c.enter()
						defer c.out()
						meet.Done()
						meet.Wait()
						return nil
					})
				}
				return nil
			}, async.Limit(n)))
		})
	}
}

// TestAWaitCutShortLeavesNothingForTheNext has waits expire just as their slot
// comes back. The next wait of the same task must not be told that by mistake.
func TestAWaitCutShortLeavesNothingForTheNext(t *testing.T) {
	spin := func(d time.Duration, v int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			for start := time.Now(); time.Since(start) < d; {
			}
			return v, nil
		}
	}
	us := func(n int) time.Duration { return time.Duration(1+rand.IntN(n)) * time.Microsecond }
	for range 4 {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 4 {
				async.Go(ctx, func(ctx context.Context) error {
					for range 200 {
						work := us(60)
						_, _ = async.Execute(ctx, spin(work, 1)).Await(ctx, us(120))
						v, err := async.Execute(ctx, spin(work, 2)).Wait(ctx)
						if v != 2 || err != nil {
							return fmt.Errorf("got %d, %w", v, err)
						}
					}
					return nil
				})
			}
			return nil
		}, async.Limit(1)))
	}
}
