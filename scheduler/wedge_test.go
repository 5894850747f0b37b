package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/scheduler"
)

// A scripted pool refuses while it is told to. Otherwise it takes everything. try, if it is
// set, answers the first tries, by their number from 1.
type scripted struct {
	tries    atomic.Int32
	refusing atomic.Bool
	try      func(n int32, task func()) (taken, answered bool)
}

func (p *scripted) Execute(task func()) error {
	if p.refusing.Load() {
		return errPool
	}
	go task()
	return nil
}

func (p *scripted) TryExecute(task func()) bool {
	if p.try != nil {
		if taken, answered := p.try(p.tries.Add(1), task); answered {
			return taken
		}
	}
	if p.refusing.Load() {
		return false
	}
	go task()
	return true
}

// beside calls f on another goroutine and waits for that.
func beside(f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	<-done
}

// A worker whose submission is refused may wait for a goroutine that is handing itself
// back. The goroutine looks at the line once more, after the pool has taken the rest.
func TestAGoroutineThatHandsBackForgetsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *scheduler.Scheduler
		var w *scheduler.ExecutorWorker
		var late scheduler.Task
		p, asked := &scripted{}, make(chan struct{})
		p.try = func(n int32, task func()) (taken, answered bool) {
			if n != 2 { // the second is the hand-back
				return false, false
			}
			beside(task) // it runs, and has left before the pool says so
			p.refusing.Store(true)
			beside(func() { late, _ = w.Schedule(nothing) })
			synctest.Wait()
			require.EqualValues(t, 1, s.Stats().Refusals)
			p.refusing.Store(false)
			close(asked)
			return true, true
		}
		s = scheduler.New(p)
		w = s.NewWorker(t.Context(), scheduler.Batch(1))
		release := make(chan struct{})
		_, err := w.Schedule(func(context.Context) { <-release })
		require.NoError(t, err)
		_, err = w.Schedule(nothing)
		require.NoError(t, err)
		close(release)
		<-asked
		synctest.Wait()
		last, err := w.Schedule(nothing)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, scheduler.Done, late.State())
		require.Equal(t, scheduler.Done, last.State())
		require.NoError(t, w.Close())
	})
}

// A worker whose submission is refused may wait for a goroutine that the pool is being
// asked for on behalf of another worker. If the pool does not give it, and the other worker
// has been closed meanwhile, the first is submitted for again.
func TestAnOfferThatFailsForgetsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *scheduler.Scheduler
		var w, other *scheduler.ExecutorWorker
		var task scheduler.Task
		p := &scripted{}
		p.try = func(n int32, _ func()) (taken, answered bool) {
			if n != 1 {
				return false, false
			}
			p.refusing.Store(true)
			beside(func() { task, _ = w.Schedule(nothing) })
			synctest.Wait()
			require.EqualValues(t, 1, s.Stats().Refusals)
			beside(func() { _ = other.Close() })
			p.refusing.Store(false)
			return false, true
		}
		s = scheduler.New(p)
		w, other = s.NewWorker(t.Context()), s.NewWorker(t.Context())
		_, err := other.Schedule(nothing)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, scheduler.Done, task.State())
		require.NoError(t, w.Close())
	})
}

// A worker whose submission is refused does not wait for a goroutine whose task waits for
// that worker.
func TestARefusedWorkerDoesNotWaitForWhoWaitsForIt(t *testing.T) {
	waits := map[string]func(ctx context.Context, v *scheduler.ExecutorWorker) error{
		"Call": func(ctx context.Context, v *scheduler.ExecutorWorker) error {
			_, err := scheduler.Call(ctx, v, one)
			return err
		},
		"Submit, Wait": func(ctx context.Context, v *scheduler.ExecutorWorker) error {
			f := scheduler.Submit(v, one)
			synctest.Wait() // it was refused before
			_, err := f.Wait(ctx)
			return err
		},
	}
	for name, wait := range waits {
		for _, try := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					p := &scripted{}
					var pool scheduler.Executor = p
					if !try {
						pool = scheduler.ExecutorFunc(p.Execute)
					}
					s := scheduler.New(pool)
					w, v := s.NewWorker(t.Context()), s.NewWorker(t.Context())
					_, err := scheduler.Call(t.Context(), w, func(ctx context.Context) (int, error) {
						p.refusing.Store(true)
						err := wait(ctx, v)
						p.refusing.Store(false)
						return 1, err
					})
					if try { // the place is lent
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, errPool)
					}
					_, err = scheduler.Call(t.Context(), w, func(ctx context.Context) (int, error) { return 1, wait(ctx, v) })
					require.NoError(t, err, "they work again when the pool does")
				})
			})
		}
	}
}

// A task that waits for another worker lends its place in the pool, if that can be asked: so
// what a task calls does not depend on how large the pool is.
func TestATaskLendsItsPlaceToTheWorkerItWaitsFor(t *testing.T) {
	for name, pool := range map[string]func() scheduler.Executor{
		"Limited":  func() scheduler.Executor { return scheduler.Limited(semaphore.NewWeighted(1)) },
		"Errgroup": func() scheduler.Executor { g := new(errgroup.Group); g.SetLimit(1); return scheduler.Errgroup(g) },
		"Inline":   scheduler.Inline,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := scheduler.New(pool(), scheduler.Batch(2))
				var all []*scheduler.ExecutorWorker
				for range 10 {
					all = append(all, s.NewWorker(t.Context()))
				}
				var running, most atomic.Int32
				var down func(ctx context.Context, i int) (int, error)
				down = func(ctx context.Context, i int) (int, error) {
					if i == len(all) {
						_, err := scheduler.Call(ctx, all[0], one)
						require.ErrorIs(t, err, scheduler.ErrSelfWait)
						return 0, nil
					}
					for range 5 { // before it in the queue
						require.NoError(t, all[i].Post(func() {
							most.Store(max(most.Load(), running.Add(1)))
							time.Sleep(time.Second)
							running.Add(-1)
						}))
					}
					v, err := scheduler.Call(ctx, all[i], func(ctx context.Context) (int, error) { return down(ctx, i+1) })
					if i == 1 {
						require.NoError(t, all[i].Drain(ctx))
					}
					return v + 1, err
				}
				v, err := down(t.Context(), 0)
				require.NoError(t, err)
				require.Equal(t, len(all), v)
				require.EqualValues(t, 1, most.Load(), "a place that was lent is one place")
				require.NoError(t, s.Drain(t.Context()))
			})
		})
	}
}
