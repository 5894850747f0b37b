package async_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// cycleCtx is the ways in which a handler may hand its context to a wait. All
// of them say that the handler's task is the one who waits.
var cycleCtx = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"own":         func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"with cancel": context.WithCancel,
	"with timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Hour)
	},
	"with value": func(ctx context.Context) (context.Context, context.CancelFunc) { return cycleValue(ctx), func() {} },
	"without cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithoutCancel(ctx), func() {}
	},
}

type cycleKey struct{}

func cycleValue(ctx context.Context) context.Context { return context.WithValue(ctx, cycleKey{}, 1) }

// cycleWaits is the ways to wait for one future.
var cycleWaits = map[string]func(context.Context, *async.Future[int]) error{
	"Await":            func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, 0); return err },
	"Await with limit": func(ctx context.Context, f *async.Future[int]) error { _, err := f.Await(ctx, time.Hour); return err },
	"Wait":             func(ctx context.Context, f *async.Future[int]) error { _, err := f.Wait(ctx); return err },
	"AwaitAll":         func(ctx context.Context, f *async.Future[int]) error { return async.AwaitAll(ctx, 0, f)[0].Err },
}

// inCycleScope runs body in a bubble and a scope, for every way to wait and
// every way to derive the context.
func inCycleScope(t *testing.T, body func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error)) {
	for derived, derive := range cycleCtx {
		for waiting, waitFor := range cycleWaits {
			t.Run(waiting+"/"+derived, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					wait := func(ctx context.Context, f *async.Future[int]) error {
						ctx, cancel := derive(ctx)
						defer cancel()
						return waitFor(ctx, f)
					}
					start := time.Now()
					require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						body(t, ctx, wait)
						return nil
					}))
					require.Less(t, time.Since(start), time.Hour, "nobody hangs until a limit")
				})
			})
		}
	}
}

func TestAwaitingYourselfIsACycle(t *testing.T) {
	inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
		var self *async.Future[int]
		known := make(chan struct{})
		self = async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-known
			err := wait(ctx, self)
			require.ErrorIs(t, err, async.ErrAwaitCycle)
			require.ErrorContains(t, err, "narcissus")
			return 7, nil
		}, async.Name("narcissus"))
		close(known)
		v, err := self.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

func TestAwaitingATaskYouArePartOfIsACycle(t *testing.T) {
	inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
		var top *async.Future[int]
		known := make(chan struct{})
		top = async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-known
			async.Go(ctx, func(ctx context.Context) error { // outlives the handler
				return async.Scope(ctx, func(ctx context.Context) error {
					f := async.Execute(ctx, func(ctx context.Context) (int, error) {
						err := wait(ctx, top)
						require.ErrorIs(t, err, async.ErrAwaitCycle)
						require.ErrorContains(t, err, "ancestor")
						require.ErrorContains(t, err, "descendant")
						return 3, nil
					}, async.Name("descendant"))
					_, err := f.Await(ctx, 0)
					return err
				})
			})
			return 7, nil
		}, async.Name("ancestor"))
		close(known)
		v, err := top.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// TestAScopeBodyIsPartOfItsTask: the waiter is a Scope inside the task.
func TestAwaitingYourTaskFromAScopeInItIsACycle(t *testing.T) {
	inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
		var top *async.Future[int]
		known := make(chan struct{})
		top = async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-known
			return 7, async.Scope(ctx, func(ctx context.Context) error {
				require.ErrorIs(t, wait(ctx, top), async.ErrAwaitCycle)
				return nil
			})
		})
		close(known)
		v, err := top.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// TestARingOfAwaitsIsFoundByTheOneThatClosesIt lets n tasks wait for each
// other one after another; the last wait closes the ring.
func TestARingOfAwaitsIsFoundByTheOneThatClosesIt(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
				ring := make([]*async.Future[int], n)
				turn := make([]chan struct{}, n)
				for i := range n {
					turn[i] = make(chan struct{})
				}
				for i := range n {
					ring[i] = async.Execute(ctx, func(ctx context.Context) (int, error) {
						<-turn[i]
						err := wait(ctx, ring[(i+1)%n])
						if i < n-1 {
							require.NoError(t, err, "whoever waited before gets its result")
							return i, nil
						}
						require.ErrorIs(t, err, async.ErrAwaitCycle)
						for j := range n {
							require.ErrorContains(t, err, fmt.Sprint("member", j), "the text holds the path")
						}
						return i, nil
					}, async.Name(fmt.Sprint("member", i)))
				}
				for i := range n {
					close(turn[i])
					synctest.Wait() // it waits now
				}
				for i, r := range async.AwaitAll(ctx, 0, ring...) {
					require.NoError(t, r.Err)
					require.Equal(t, i, r.Value)
				}
			})
		})
	}
}

func TestARingThroughScopesAndJoinsIsACycle(t *testing.T) {
	for _, first := range []string{"the child", "the other"} {
		t.Run(first+" waits first", func(t *testing.T) {
			inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
				var a, b *async.Future[int]
				var cycles atomic.Int32
				childTurn, otherTurn := make(chan struct{}), make(chan struct{})
				note := func(err error) {
					if err != nil {
						require.ErrorIs(t, err, async.ErrAwaitCycle)
						cycles.Add(1)
					}
				}
				// a has returned and joins a child, in a scope of whose task b is awaited.
				a = async.Execute(ctx, func(ctx context.Context) (int, error) {
					async.Go(ctx, func(ctx context.Context) error {
						return async.Scope(ctx, func(ctx context.Context) error {
							async.Go(ctx, func(ctx context.Context) error {
								<-childTurn
								note(wait(ctx, b))
								return nil
							})
							return nil
						})
					})
					return 1, nil
				})
				b = async.Execute(ctx, func(ctx context.Context) (int, error) {
					<-otherTurn
					return 2, async.Scope(ctx, func(ctx context.Context) error {
						note(wait(ctx, a))
						return nil
					})
				})
				turns := []chan struct{}{childTurn, otherTurn}
				if first == "the other" {
					turns[0], turns[1] = turns[1], turns[0]
				}
				for _, turn := range turns {
					close(turn)
					synctest.Wait()
				}
				for _, r := range async.AwaitAll(ctx, 0, a, b) {
					require.NoError(t, r.Err)
				}
				require.EqualValues(t, 1, cycles.Load())
			})
		})
	}
}

func TestTwoThatCloseARingAtOnceDoNotHang(t *testing.T) {
	inCycleScope(t, func(t *testing.T, ctx context.Context, wait func(context.Context, *async.Future[int]) error) {
		for range 100 {
			var a, b *async.Future[int]
			go1 := make(chan struct{})
			errs := make([]error, 2)
			a = async.Execute(ctx, func(ctx context.Context) (int, error) {
				<-go1
				errs[0] = wait(ctx, b)
				return 1, nil
			})
			b = async.Execute(ctx, func(ctx context.Context) (int, error) {
				<-go1
				errs[1] = wait(ctx, a)
				return 2, nil
			})
			close(go1)
			for _, r := range async.AwaitAll(ctx, 0, a, b) {
				require.NoError(t, r.Err)
			}
			cycles := 0
			for _, err := range errs {
				if err != nil {
					require.ErrorIs(t, err, async.ErrAwaitCycle)
					cycles++
				}
			}
			require.NotZero(t, cycles, "somebody must have been refused, else both had hung")
		}
	})
}

func TestACycleTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			var a *async.Future[int]
			known := make(chan struct{})
			done := async.Completed(1, nil)
			a = async.Execute(ctx, func(ctx context.Context) (int, error) {
				<-known
				all := async.AwaitAll(ctx, time.Minute, done, a, done)
				require.NoError(t, all[0].Err)
				require.ErrorIs(t, all[1].Err, async.ErrAwaitCycle)
				require.NoError(t, all[2].Err, "the others of an AwaitAll are awaited all the same")
				_, err := a.Await(ctx, -1)
				require.Error(t, err)
				return 5, nil
			}, async.OnAbort(func(context.Context, error) error { return nil }))
			close(known)
			v, err := a.Wait(ctx)
			require.Equal(t, 5, v)
			return err
		}))
	})
}

func TestAwaitsInTheOrderOfADAGAreNeverTakenForACycle(t *testing.T) {
	const tasks, rounds = 200, 20
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			all := make([]*async.Future[int], tasks)
			ready := make(chan struct{})
			for i := range tasks {
				var on []int
				for range min(i, rng.IntN(6)) {
					on = append(on, rng.IntN(i))
				}
				nested := rng.IntN(3) == 0
				all[i] = async.Execute(ctx, func(ctx context.Context) (int, error) {
					<-ready
					await := func(ctx context.Context) error {
						for _, j := range on {
							if v, err := all[j].Await(ctx, 0); err != nil || v != j {
								return fmt.Errorf("%d awaiting %d: %v, %w", i, j, v, err)
							}
						}
						return nil
					}
					if nested {
						return i, async.Scope(ctx, func(ctx context.Context) error {
							async.Go(ctx, await)
							return await(ctx)
						})
					}
					return i, await(ctx)
				})
			}
			close(ready)
			for i, r := range async.AwaitAll(ctx, 0, all...) {
				if r.Err != nil || r.Value != i {
					return fmt.Errorf("%d: %v, %w", i, r.Value, r.Err)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// TestWaitsThatComeAndGoAreNotTakenForACycle: a waits for b and gives up, then
// b waits for a, again and again, so an edge that is gone must not be believed.
func TestWaitsThatComeAndGoAreNotTakenForACycle(t *testing.T) {
	const rounds = 5000
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		var a, b *async.Future[int]
		known := make(chan struct{})
		turn := make(chan struct{}, 1)
		turn <- struct{}{}
		observe := func(other **async.Future[int]) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				<-known
				for range rounds {
					<-turn // only one of the two waits at any time
					brief, cancel := context.WithCancel(ctx)
					go cancel()
					_, err := (*other).Wait(brief)
					turn <- struct{}{}
					if _, _, settled := (*other).Result(); !settled {
						require.NotErrorIs(t, err, async.ErrAwaitCycle)
					}
				}
				return 1, nil
			}
		}
		a = async.Execute(ctx, observe(&b))
		b = async.Execute(ctx, observe(&a))
		close(known)
		for _, r := range async.AwaitAll(ctx, 0, a, b) {
			require.NoError(t, r.Err)
		}
		return nil
	}))
}

// TestAWaitThatIsRefusedIsNoPartOfAnotherRing: somebody awaits an ancestor, which
// is refused; who awaits that somebody is not.
func TestAWaitThatIsRefusedIsNoPartOfAnotherRing(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 50_000 / raceFactor {
		var top *async.Future[int]
		known := make(chan struct{})
		top = async.Execute(ctx, func(ctx context.Context) (int, error) {
			<-known
			return async.Execute(ctx, func(ctx context.Context) (int, error) {
				_, err := top.Await(ctx, 0)
				require.ErrorIs(t, err, async.ErrAwaitCycle)
				return 3, nil
			}).Await(ctx, 0)
		})
		close(known)
		v, err := top.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 3, v)
	}
}

// The path of a cycle is one path, in which no task stands twice in a row.
func TestTheTextOfACycleIsOnePath(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			names := []string{"a", "b", "c", "d"}
			futures := make([]*async.Future[struct{}], len(names))
			ready := make(chan struct{})
			for i, name := range names {
				futures[i] = async.Start(ctx, func(ctx context.Context) error {
					<-ready
					time.Sleep(time.Duration(i) * time.Second)
					if name == "b" { // waits in a task of its own
						_, err := async.Start(ctx, func(ctx context.Context) error {
							_, err := futures[i+1].Await(ctx, 0)
							return err
						}, async.Name("part")).Await(ctx, 0)
						return err
					}
					_, err := futures[(i+1)%len(names)].Await(ctx, 0)
					return err
				}, async.Name(name))
			}
			close(ready)
			_, err := futures[3].Join(ctx)
			require.EqualError(t, err, "async: await cycle: d -> a -> b -> part -> c -> d")
			self := make(chan *async.Future[struct{}], 1)
			f := async.Start(ctx, func(ctx context.Context) error { _, err := (<-self).Await(ctx, 0); return err }, async.Name("me"))
			self <- f
			_, err = f.Await(ctx, 0)
			require.EqualError(t, err, "async: await cycle: me -> me")
			return nil
		})
	})
}

// The search goes from both ends in step. Whichever end is long, a ring is found
// and none is imagined.
func TestARingIsFoundAmongManyWaits(t *testing.T) {
	const many = 300
	for _, waiters := range []int{0, many} {
		for _, children := range []int{0, many} {
			for _, ring := range []bool{true, false} {
				t.Run(fmt.Sprint(waiters, " waiters, ", children, " children, a ring: ", ring), func(t *testing.T) {
					inBubble(t, func(t *testing.T, ctx context.Context) {
						_ = async.Scope(ctx, func(ctx context.Context) error {
							var me, busy *async.Future[struct{}]
							ready, stop := make(chan struct{}), make(chan struct{})
							idle := func(ctx context.Context) error {
								_, err := async.Start(ctx, func(context.Context) error { <-stop; return nil }).Wait(ctx)
								return err
							}
							busy = async.Start(ctx, func(ctx context.Context) error {
								<-ready
								for range children {
									async.Start(ctx, idle)
								}
								if ring {
									derived, cancel := context.WithCancel(ctx)
									defer cancel()
									_, err := me.Wait(derived)
									return err
								}
								return idle(ctx)
							}, async.Name("busy"))
							me = async.Start(ctx, func(ctx context.Context) error {
								<-ready
								for range waiters {
									async.Start(ctx, idle)
								}
								time.Sleep(time.Second)
								_, err := busy.Wait(ctx)
								return err
							}, async.Name("me"))
							for range waiters {
								async.Start(ctx, func(ctx context.Context) error { _, err := me.Wait(ctx); return err })
							}
							close(ready)
							time.AfterFunc(time.Minute, func() { close(stop) })
							_, err := me.Wait(ctx)
							if ring {
								require.EqualError(t, err, "async: await cycle: me -> busy -> me")
							} else {
								require.NoError(t, err)
							}
							return nil
						})
					})
				})
			}
		}
	}
}

// Waits that do not block, and waits that are over, are no part of a cycle.
func TestWaitsThatAreOverMakeNoCycle(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			var a *async.Future[struct{}]
			made := make(chan struct{})
			b := async.Start(ctx, func(ctx context.Context) error {
				<-made
				time.Sleep(time.Second)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := a.Wait(short) // is over before a waits for b
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(time.Hour)
				return nil
			})
			a = async.Start(ctx, func(ctx context.Context) error {
				time.Sleep(time.Minute)
				_, err := b.Wait(ctx)
				return err
			})
			close(made)
			_, err := a.Join(ctx)
			return err
		}))
	})
}
