package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

func one(context.Context) (int, error) { return 1, nil }

// callsBack is a task that calls w.
func callsBack(w *scheduler.ExecutorWorker) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return scheduler.Call(ctx, w, one) }
}

// A wait that comes back to the worker whose task waits returns at once, whichever way it
// comes, and tells the way.
func TestAWaitThatComesBackToItsWorkerIsRefused(t *testing.T) {
	const there = "account 17 -> ledger -> account 17"
	const back = "ledger -> account 17 -> ledger"
	for name, test := range map[string]struct {
		f    func(ctx context.Context, w, v *scheduler.ExecutorWorker) error // in a task of w
		want error
		path string
	}{
		"Submit, Wait": {func(ctx context.Context, w, _ *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(w, one).Wait(ctx)
			return err
		}, scheduler.ErrSelfWait, ""},
		"Submit, Await with a limit": {func(ctx context.Context, w, _ *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(w, one).Await(ctx, time.Hour)
			return err
		}, scheduler.ErrSelfWait, ""},
		"Submit, Join": {func(ctx context.Context, w, _ *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(w, one).Join(ctx)
			return err
		}, scheduler.ErrSelfWait, ""},
		"Submit, AwaitAll": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			return async.AwaitAll(ctx, 0, scheduler.Submit(v, one), scheduler.Submit(w, one))[1].Err
		}, scheduler.ErrSelfWait, ""},
		"Call of another that calls back": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			_, err := scheduler.Call(ctx, v, callsBack(w))
			return err
		}, scheduler.ErrSelfWait, ""},
		"a task that calls": {func(ctx context.Context, w, _ *scheduler.ExecutorWorker) error {
			_, err := async.Execute(ctx, callsBack(w)).Wait(ctx)
			return err
		}, scheduler.ErrSelfWait, ""},
		"a future of another whose task calls back": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(v, func(ctx context.Context) (int, error) {
				synctest.Wait() // until the worker waits
				return callsBack(w)(ctx)
			}).Wait(ctx)
			return err
		}, async.ErrAwaitCycle, back},
		"a future of another whose task waits for the worker": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(v, func(ctx context.Context) (int, error) {
				synctest.Wait() // until the worker waits
				return 0, w.Wait(ctx)
			}).Wait(ctx)
			return err
		}, async.ErrAwaitCycle, back},
		"a future of another whose task drains the worker": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(v, func(ctx context.Context) (int, error) {
				synctest.Wait() // until the worker waits
				return 0, w.Drain(ctx)
			}).Wait(ctx)
			if w.Closed() {
				return errors.New("the drain that was refused has begun")
			}
			return err
		}, async.ErrAwaitCycle, back},
		"Drain of another whose task calls back": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			told := make(chan error, 1)
			_, _ = v.Schedule(func(ctx context.Context) {
				synctest.Wait() // until the worker waits
				_, err := scheduler.Call(ctx, w, one)
				told <- err
			})
			return errors.Join(v.Drain(ctx), <-told)
		}, async.ErrAwaitCycle, back},
		"Drain of another whose task calls back already": {func(ctx context.Context, w, v *scheduler.ExecutorWorker) error {
			f := scheduler.Submit(v, callsBack(w))
			defer f.Cancel(nil)
			synctest.Wait()
			err := v.Drain(ctx)
			if v.Closed() {
				return errors.New("the drain that was refused has begun")
			}
			return err
		}, async.ErrAwaitCycle, there},
		"Scheduler.Drain of another whose task calls back already": {func(ctx context.Context, w, _ *scheduler.ExecutorWorker) error {
			other := scheduler.New(scheduler.Goroutines())
			defer other.Close()
			v := other.NewWorker(context.Background(), scheduler.Name("ledger"))
			f := scheduler.Submit(v, callsBack(w))
			defer f.Cancel(nil)
			synctest.Wait()
			return other.Drain(ctx)
		}, async.ErrAwaitCycle, there},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := scheduler.New(scheduler.Goroutines())
				ctx := asynctest.Context(t)
				w, v := s.NewWorker(ctx, scheduler.Name("account 17")), s.NewWorker(ctx, scheduler.Name("ledger"))
				var err error
				_, _ = scheduler.Call(ctx, w, func(ctx context.Context) (int, error) { err = test.f(ctx, w, v); return 0, nil })
				require.ErrorIs(t, err, test.want)
				require.ErrorContains(t, err, test.path)
				idle(t, w)
				idle(t, v)
				for _, w := range []*scheduler.ExecutorWorker{w, v} {
					if !w.Closed() { // it goes on
						_, err = scheduler.Call(ctx, w, one)
						require.NoError(t, err)
					}
				}
			})
		})
	}
}

// The same holds of tasks without a future, and through any number of workers. One of the
// waits that close a ring is refused, the others go on.
func TestOneWaitOfARingOfWorkersIsRefused(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		inBubble(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Goroutines())
			ctx := asynctest.Context(t)
			var all []*scheduler.ExecutorWorker
			for range n {
				all = append(all, s.NewWorker(ctx))
			}
			begin, told := make(chan struct{}), make(chan error, n)
			for i, w := range all {
				_, err := w.Schedule(func(ctx context.Context) {
					<-begin
					_, err := scheduler.Submit(all[(i+1)%n], one).Wait(ctx)
					told <- err
				})
				require.NoError(t, err)
			}
			synctest.Wait()
			close(begin)
			refused := 0
			for range n {
				if err := <-told; err != nil {
					require.ErrorIs(t, err, async.ErrAwaitCycle)
					refused++
				}
			}
			require.Equal(t, 1, refused)
		})
	}
}

// Waits that can end are not refused: tasks call only workers behind their own, so there is
// no ring, and waits that are given up are none.
func TestAWaitThatCanEndIsNotRefused(t *testing.T) {
	for seed := range uint64(200 / scheduler.RaceFactor) {
		inBubble(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Goroutines())
			ctx := asynctest.Context(t)
			var all []*scheduler.ExecutorWorker
			for range 4 {
				all = append(all, s.NewWorker(ctx))
			}
			var goOn func(ctx context.Context, i int, rng *rand.Rand) (int, error)
			goOn = func(ctx context.Context, i int, rng *rand.Rand) (int, error) {
				if time.Sleep(time.Duration(rng.IntN(2)) * time.Millisecond); i+1 == len(all) {
					return 1, nil
				}
				i++
				short, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(3))*time.Millisecond)
				_ = all[i+rng.IntN(len(all)-i)].Wait(short)
				cancel()
				next, seed := i+rng.IntN(len(all)-i), rng.Uint64()
				f := func(ctx context.Context) (int, error) { return goOn(ctx, next, rand.New(rand.NewPCG(seed, 1))) }
				if rng.IntN(2) == 0 {
					return scheduler.Call(ctx, all[next], f)
				}
				return scheduler.Submit(all[next], f).Await(ctx, 0)
			}
			var futures []*async.Future[int]
			for i := range 12 {
				futures = append(futures, async.Execute(ctx, func(ctx context.Context) (int, error) {
					return scheduler.Call(ctx, all[i%4], func(ctx context.Context) (int, error) {
						return goOn(ctx, i%4, rand.New(rand.NewPCG(seed, uint64(i))))
					})
				}))
			}
			for _, r := range async.AwaitAll(ctx, 0, futures...) {
				require.NoError(t, r.Err)
			}
		})
	}
}

// A task may wait for the worker of a task that has returned, with the context of that.
func TestAnOldContextIsNoTaskThatRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Goroutines())
		w, v := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		var old context.Context
		_, err := scheduler.Call(t.Context(), w, func(ctx context.Context) (int, error) {
			old = context.WithoutCancel(ctx)
			return 1, nil
		})
		require.NoError(t, err)
		_, err = scheduler.Submit(w, one).Wait(old)
		require.NoError(t, err)
		release := blocked(t, v)
		go func() { _ = v.Wait(old) }()
		synctest.Wait()
		go func() { time.Sleep(time.Second); release() }()
		_, err = scheduler.Submit(v, func(ctx context.Context) (int, error) {
			return scheduler.Submit(w, one).Wait(ctx)
		}).Wait(t.Context())
		require.NoError(t, err)
	})
}

// Whoever has the result of a task may wait for its worker at once, with the ctx of that task: the
// task is over, though the worker has perhaps not noted it yet.
func TestATaskIsOverWhenItsResultIsGiven(t *testing.T) {
	const times = 5000
	waits := map[string]func(old context.Context, w *scheduler.ExecutorWorker) error{
		"Submit": func(old context.Context, w *scheduler.ExecutorWorker) error {
			_, err := scheduler.Submit(w, one).Wait(old)
			return err
		},
		"Wait": func(old context.Context, w *scheduler.ExecutorWorker) error { return w.Wait(old) },
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
			for range times {
				old, err := scheduler.Call(t.Context(), w, func(ctx context.Context) (context.Context, error) {
					return context.WithoutCancel(ctx), nil
				})
				require.NoError(t, err)
				require.NoError(t, wait(old, w))
			}
			require.NoError(t, w.Drain(context.Background()))
		})
	}
}

// The ctx of a task that has ended is that of no task, so Call with it is none from inside.
func TestCallWithTheContextOfATaskThatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
		var old context.Context
		_, err := w.Schedule(func(ctx context.Context) { old = context.WithoutCancel(ctx) })
		require.NoError(t, err)
		require.NoError(t, w.Wait(t.Context()))
		value, err := scheduler.Call(old, w, one)
		require.NoError(t, err)
		require.Equal(t, 1, value)
	})
}

// The search for a ring comes by each worker once, however many ways lead to it.
func TestManyWaysBetweenWorkersAreOneSearch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const n = 60
		s := scheduler.New(scheduler.Goroutines())
		ctx := asynctest.Context(t)
		var all []*scheduler.ExecutorWorker
		for range n {
			all = append(all, s.NewWorker(ctx))
		}
		last := blocked(t, all[n-1])
		for i := n - 2; i >= 0; i-- { // each waits for the next in two ways
			next := all[i+1]
			scheduler.Submit(all[i], func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { return next.Wait(ctx) })
				return 1, next.Wait(ctx)
			})
			synctest.Wait()
		}
		told := make(chan error, 1)
		_, err := s.NewWorker(ctx).Schedule(func(ctx context.Context) { told <- all[0].Wait(ctx) })
		require.NoError(t, err)
		synctest.Wait()
		last()
		require.NoError(t, <-told)
	})
}
