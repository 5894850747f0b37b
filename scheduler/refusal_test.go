package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// answering is a pool that has one goroutine, which it gives to the first
// submission. It looks at others until the test answers them.
type answering struct {
	given   atomic.Bool
	asked   chan struct{} // a submission is looked at
	answers chan error    // nil: it is given a goroutine
}

func newAnswering() *answering {
	return &answering{asked: make(chan struct{}), answers: make(chan error)}
}

func (p *answering) Execute(task func()) error {
	if p.given.CompareAndSwap(false, true) {
		go task()
		return nil
	}
	p.asked <- struct{}{}
	err := <-p.answers
	if err == nil {
		go task()
	}
	return err
}

// TestAWorkerThatIsRefusedWaitsForTheGoroutineThatIsThere, and nobody's tasks
// are rejected.
func TestAWorkerThatIsRefusedWaitsForTheGoroutineThatIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool := newAnswering()
		s := scheduler.New(pool, scheduler.Batch(1))
		a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		release := blocked(t, a)
		for range 100 {
			require.NoError(t, a.Post(func() {}))
		}
		require.NoError(t, b.Post(func() { pool.answers <- errPool; time.Sleep(time.Second) }))
		<-pool.asked
		release() // the goroutine goes on with b, and a waits for its next turn
		require.NoError(t, b.Wait(t.Context()))
		require.NoError(t, a.Wait(t.Context()))
		require.EqualValues(t, 101, addUp(t, a).Done)
		require.EqualValues(t, 1, addUp(t, b).Done)
		require.EqualValues(t, 1, s.Stats().Refusals)
	})
}

// TestAWorkerThatIsRefusedWaitsForAGoroutineThatIsPromised: the pool has
// accepted a submission and not begun it.
func TestAWorkerThatIsRefusedWaitsForAGoroutineThatIsPromised(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m, n := &manual{}, 0
		s := scheduler.New(scheduler.ExecutorFunc(func(task func()) error {
			if n++; n > 1 {
				return errPool
			}
			return m.Execute(task)
		}))
		a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		require.NoError(t, a.Post(func() {}))
		require.NoError(t, b.Post(func() {}))
		synctest.Wait()
		require.EqualValues(t, 1, s.Stats().Refusals)
		require.Zero(t, addUp(t, b).Rejected)
		m.run()
		require.EqualValues(t, 1, addUp(t, a).Done)
		require.EqualValues(t, 1, addUp(t, b).Done)
	})
}

// TestAWorkerThatWaitsForAGoroutineThatDiesIsNotForgotten: it has a submission
// made for it, and if that is refused, too, its queue is rejected.
func TestAWorkerThatWaitsForAGoroutineThatDiesIsNotForgotten(t *testing.T) {
	for name, again := range map[string]error{"accepted": nil, "refused": errPool} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pool := newAnswering()
				s := scheduler.New(pool)
				a, b, c := s.NewWorker(t.Context()), s.NewWorker(t.Context()), s.NewWorker(t.Context())
				gate := make(chan struct{})
				require.NoError(t, a.Post(func() { <-gate; runtime.Goexit() }))
				synctest.Wait()
				require.NoError(t, a.Post(func() {}))
				for _, w := range []*scheduler.ExecutorWorker{b, c} {
					require.NoError(t, w.Post(func() {}))
					<-pool.asked
					pool.answers <- errPool
				}
				synctest.Wait()
				require.Equal(t, 2, s.Stats().Ready)
				stop := make(chan struct{})
				go func() {
					for {
						select {
						case <-pool.asked:
							pool.answers <- again
						case <-stop:
							return
						}
					}
				}()
				close(gate)
				for _, w := range []*scheduler.ExecutorWorker{a, b, c} {
					require.NoError(t, w.Wait(t.Context()))
					st := addUp(t, w)
					require.Zero(t, st.Pending)
					require.Equal(t, again != nil, st.Rejected == 1)
					require.Equal(t, again == nil, st.Done == 1)
				}
				close(stop)
			})
		})
	}
}

// TestARefusalWithNobodyAtWorkRejectsThatWorkerAndNoOther: the others have
// submissions of their own.
func TestARefusalWithNobodyAtWorkRejectsThatWorkerAndNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool := newAnswering()
		pool.given.Store(true)
		s := scheduler.New(pool)
		a, b := s.NewWorker(t.Context()), s.NewWorker(t.Context())
		for range 10 {
			require.NoError(t, a.Post(func() {}))
			require.NoError(t, b.Post(func() {}))
		}
		<-pool.asked
		pool.answers <- errPool
		<-pool.asked
		pool.answers <- nil
		require.NoError(t, a.Wait(t.Context()))
		require.NoError(t, b.Wait(t.Context()))
		require.EqualValues(t, 10, addUp(t, a).Rejected)
		require.EqualValues(t, 10, addUp(t, b).Done)
	})
}

// TestThereIsOneTypeOfRejection for both packages, whoever has refused.
func TestThereIsOneTypeOfRejection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		refuse := scheduler.ExecutorFunc(func(func()) error { return errPool })
		w := scheduler.New(refuse, scheduler.Name("deploy")).NewWorker(ctx)
		work := func(context.Context) (int, error) { return 1, nil }
		_, queued := scheduler.Submit(w, work).Await(ctx, 0)
		_, started := async.Execute(ctx, work, async.On(refuse), async.Name("fetch")).Await(ctx, 0)
		full := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Capacity(1, scheduler.Fail))
		release := blocked(t, full)
		require.NoError(t, full.Post(func() {}))
		_, tooMany := scheduler.Submit(full, work).Await(ctx, 0)
		release()
		for err, text := range map[error]string{
			queued:  "scheduler: deploy: rejected by the pool: the pool is full",
			started: "async: fetch: rejected by its executor: the pool is full",
			tooMany: "",
		} {
			var one *async.RejectedError
			var other *scheduler.RejectedError
			require.ErrorAs(t, err, &one)
			require.ErrorAs(t, err, &other)
			require.Same(t, one, other)
			if text != "" {
				require.Equal(t, text, err.Error())
			}
		}
		require.ErrorIs(t, tooMany, scheduler.ErrFull)
		require.False(t, errors.Is(tooMany, errPool))
	})
}
