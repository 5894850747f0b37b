package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// outcomes counts the events of a worker.
type outcomes [scheduler.Exited + 1]atomic.Int32

func (o *outcomes) observe() scheduler.WorkerOption {
	return scheduler.Observe(func(e scheduler.Event) { o[e.Outcome].Add(1) })
}

// TestEveryAcceptedTaskHasExactlyOneOutcome where the pool refuses now and then:
// it ran, or was rejected, and the worker works again.
func TestEveryAcceptedTaskHasExactlyOneOutcome(t *testing.T) {
	for _, some := range []map[string]func(t *testing.T) scheduler.Executor{pools, refusers} {
		onEvery(t, some, func(t *testing.T, pool scheduler.Executor) {
			var told outcomes
			w := scheduler.New(pool, scheduler.Batch(5), told.observe()).NewWorker(t.Context())
			const bursts, each = 20, 10
			var ran [bursts * each]atomic.Int32
			var tasks []scheduler.Task
			for b := range bursts {
				for i := range each {
					task, err := w.Schedule(func(context.Context) { ran[b*each+i].Add(1) })
					require.NoError(t, err)
					tasks = append(tasks, task)
				}
				require.NoError(t, w.Wait(t.Context()))
			}
			for i, task := range tasks {
				switch task.State() {
				case scheduler.Done:
					require.EqualValues(t, 1, ran[i].Load())
				case scheduler.Rejected:
					require.Zero(t, ran[i].Load())
				default:
					t.Error(task.State())
				}
			}
			synctest.Wait() // until all is told
			st := addUp(t, w)
			require.EqualValues(t, bursts*each, st.Done+st.Rejected)
			require.EqualValues(t, st.Done, told[scheduler.Done].Load())
			require.EqualValues(t, st.Rejected, told[scheduler.Rejected].Load())
			idle(t, w)
		})
	}
}

// TestARefusalEndsWhatIsQueuedAndNoMore: refuse every second, and the first and
// third burst run. A delayed task has its own chance.
func TestARefusalEndsWhatIsQueuedAndNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var why []error
		s := scheduler.New(refusing(2), scheduler.Name("job"), scheduler.Observe(func(e scheduler.Event) {
			if e.Outcome == scheduler.Rejected {
				why = append(why, e.Err)
			}
		}))
		w := s.NewWorker(t.Context())
		schedule := func(want scheduler.State) {
			t.Helper()
			synctest.Wait() // until the goroutine of the task before has gone: it would serve this one, too
			task, err := w.Schedule(nothing)
			require.NoError(t, err)
			require.NoError(t, w.Wait(t.Context()))
			require.Equal(t, want, task.State())
		}
		schedule(scheduler.Done)
		late, err := w.ScheduleAfter(time.Second, nothing)
		require.NoError(t, err)
		schedule(scheduler.Rejected)
		require.Equal(t, scheduler.Pending, late.State())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, scheduler.Done, late.State())
		schedule(scheduler.Rejected)
		synctest.Wait()
		require.Len(t, why, 2)
		var rejected *scheduler.RejectedError
		require.ErrorAs(t, why[0], &rejected)
		require.Equal(t, "job", rejected.Worker)
		require.ErrorIs(t, why[0], errPool)
		require.EqualValues(t, 2, s.Stats().Refusals)
		idle(t, w)
	})
}

// TestARefusalHitsOneWorker, and the others run.
func TestARefusalHitsOneWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := scheduler.New(refusing(3))
		var done, rejected uint64
		for range 30 {
			w := s.NewWorker(t.Context())
			require.NoError(t, w.Post(func() {}))
			synctest.Wait()
			st := addUp(t, w)
			done += st.Done
			rejected += st.Rejected
			idle(t, w)
		}
		require.EqualValues(t, 20, done)
		require.EqualValues(t, 10, rejected)
	})
}

// dropping accepts tasks and runs none, until it is to.
type dropping struct{ works atomic.Bool }

func (d *dropping) Execute(task func()) error {
	if d.works.Load() {
		go task()
	}
	return nil
}

// TestWhatADroppingPoolHasIsRejectedWhenItEnds, whatever else was done with the
// worker before.
func TestWhatADroppingPoolHasIsRejectedWhenItEnds(t *testing.T) {
	boom := errors.New("shut down")
	for name, before := range map[string]func(ctx context.Context, s *scheduler.Scheduler, w *scheduler.ExecutorWorker){
		"nothing":           func(context.Context, *scheduler.Scheduler, *scheduler.ExecutorWorker) {},
		"the worker drains": func(ctx context.Context, _ *scheduler.Scheduler, w *scheduler.ExecutorWorker) { go w.Drain(ctx) },
		"all workers drain": func(ctx context.Context, s *scheduler.Scheduler, _ *scheduler.ExecutorWorker) { go s.Drain(ctx) },
		"somebody waits":    func(ctx context.Context, _ *scheduler.Scheduler, w *scheduler.ExecutorWorker) { go w.Wait(ctx) },
		"a task is delayed": func(_ context.Context, _ *scheduler.Scheduler, w *scheduler.ExecutorWorker) {
			_, _ = w.ScheduleAfter(time.Hour, nothing)
		},
		"a task is cancelled": func(_ context.Context, _ *scheduler.Scheduler, w *scheduler.ExecutorWorker) {
			task, _ := w.Schedule(nothing)
			task.Cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pool, end := context.WithCancelCause(t.Context())
				s := scheduler.New(new(dropping), scheduler.PoolContext(pool))
				w := s.NewWorker(t.Context())
				task, err := w.Schedule(func(context.Context) { t.Error("it ran") })
				require.NoError(t, err)
				future := scheduler.Submit(w, func(context.Context) (int, error) { return 1, nil })
				before(t.Context(), s, w)
				time.Sleep(time.Second)
				require.Equal(t, scheduler.Pending, task.State())
				end(boom)
				_, err = future.Await(t.Context(), time.Second)
				require.ErrorIs(t, err, boom)
				synctest.Wait()
				require.Equal(t, scheduler.Rejected, task.State())
				require.NoError(t, w.Wait(t.Context()))
				require.True(t, w.Closed())
				require.Equal(t, scheduler.ErrClosed, w.Post(func() {}))
				st := addUp(t, w)
				require.Zero(t, st.Pending)
				require.Zero(t, s.Stats().Workers)
			})
		})
	}
}

// TestAPoolThatHasEndedBefore the scheduler is made.
func TestAPoolThatHasEndedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool, end := context.WithCancel(t.Context())
		end()
		s := scheduler.New(new(dropping), scheduler.PoolContext(pool))
		synctest.Wait()
		w := s.NewWorker(t.Context())
		require.Equal(t, scheduler.ErrClosed, w.Post(func() {}))
	})
}

// TestAPoolThatDropsOnce is not noticed, but CancelPending and Close need no
// goroutine of it.
func TestAPoolThatDropsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool := new(dropping)
		w := scheduler.New(pool).NewWorker(t.Context())
		require.NoError(t, w.Post(func() { t.Error("it ran") }))
		synctest.Wait()
		require.Equal(t, 1, w.CancelPending())
		require.NoError(t, w.Wait(t.Context()))
		require.NoError(t, w.Post(func() { t.Error("it ran") }))
		require.NoError(t, w.Close())
		require.NoError(t, w.Wait(t.Context()))
		require.EqualValues(t, 2, addUp(t, w).Cancelled)
	})
}

// TestTheRunningTaskGoesOnWhenThePoolEnds and what is behind it is rejected.
func TestTheRunningTaskGoesOnWhenThePoolEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pool, end := context.WithCancel(t.Context())
		s := scheduler.New(scheduler.Goroutines(), scheduler.PoolContext(pool))
		w := s.NewWorker(t.Context())
		running, err := w.Schedule(func(ctx context.Context) { <-ctx.Done(); time.Sleep(time.Second) })
		require.NoError(t, err)
		synctest.Wait()
		behind, err := w.Schedule(nothing)
		require.NoError(t, err)
		end()
		synctest.Wait()
		require.Equal(t, scheduler.Running, running.State())
		require.Equal(t, scheduler.Rejected, behind.State())
		require.NoError(t, w.Wait(t.Context()))
		require.Equal(t, scheduler.Done, running.State())
	})
}

// TestAWorkerWorksAgainWhenThePoolDoes.
func TestAWorkerWorksAgainWhenThePoolDoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var broken atomic.Bool
		s := scheduler.New(scheduler.ExecutorFunc(func(task func()) error {
			if broken.Load() {
				return errPool
			}
			go task()
			return nil
		}))
		w := s.NewWorker(t.Context())
		for i := range 10 {
			broken.Store(i%2 == 1)
			task, err := w.Schedule(nothing)
			require.NoError(t, err)
			every, err := w.ScheduleEvery(0, time.Second, nothing)
			require.NoError(t, err)
			time.Sleep(time.Minute + time.Millisecond) // between two ticks
			if i%2 == 1 {
				require.Equal(t, scheduler.Rejected, task.State())
				require.Equal(t, scheduler.Rejected, every.State())
			} else {
				require.Equal(t, scheduler.Done, task.State())
				require.Equal(t, scheduler.Pending, every.State())
			}
			every.Cancel()
			addUp(t, w)
		}
		idle(t, w)
	})
}
