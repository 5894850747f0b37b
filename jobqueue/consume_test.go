package jobqueue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Consumers take and run jobs beside each other until the queue is drained.
func TestConsumeWorksUntilDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		for i := range 10 {
			q.Add(i)
		}
		var mu sync.Mutex
		var got []int
		var busy, most atomic.Int32
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return q.Consume(ctx, 3, 2, func(ctx context.Context, jobs []int) error {
					if n := busy.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer busy.Add(-1)
					assert.LessOrEqual(t, len(jobs), 2)
					mu.Lock()
					got = append(got, jobs...)
					mu.Unlock()
					return async.Sleep(ctx, time.Second)
				})
			})
			synctest.Wait()
			assert.Len(t, q.InProgress(), 6)
			return q.Drain(ctx)
		}))
		slices.Sort(got)
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
		assert.Equal(t, int32(3), most.Load())
	})
}

// An error is its batch's affair: the jobs are tried again.
func TestConsumeGoesOnAfterErrors(t *testing.T) {
	q := queueOf(1, 2, 3)
	tries := 0
	err := q.Consume(t.Context(), 1, 1, func(_ context.Context, jobs []int) error {
		if tries++; tries%2 == 1 {
			return errBoom
		}
		if jobs[0] == 3 {
			q.Close()
		}
		return nil
	})
	assert.NoError(t, err)
	assert.Equal(t, 6, tries)
	assert.Equal(t, uint64(3), q.Stats().Failed)
}

// A panic is Consume's, once its batch is back and the other workers are
// joined; so is Goexit.
func TestConsumeHandsOnPanics(t *testing.T) {
	for name, f := range map[string]func(){"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(1, 2)
			var other sync.WaitGroup
			other.Add(1)
			joined := false
			var err error
			raised := func() (p any) {
				defer func() { p = recover() }()
				err = q.Consume(t.Context(), 2, 1, func(ctx context.Context, jobs []int) error {
					if jobs[0] == 1 {
						other.Wait()
						f()
					}
					other.Done()
					<-ctx.Done()
					joined = true
					return nil
				})
				return nil
			}()
			if name == "panic" {
				assert.ErrorIs(t, raised.(error), errBoom)
			} else {
				assert.ErrorIs(t, err, async.ErrGoexit)
			}
			assert.True(t, joined)
			assert.Equal(t, []int{1, 2}, q.Queued())
		})
	}
}

// A panic of an observer or of what buries the dead is not swallowed with the
// errors of batches.
func TestConsumeHandsOnPanicsOfOptions(t *testing.T) {
	q := jobqueue.New[int](jobqueue.MaxAttempts(1, func(int, error) { panic(errBoom) }))
	q.Add(1)
	err := q.Consume(t.Context(), 1, 1, func(context.Context, []int) error { return errors.New("failed") })
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, errBoom, p.Value)
}

// Cancelled, Consume says why, waiting or working, and nothing else.
func TestConsumeSaysWhyItWasStopped(t *testing.T) {
	cause := errors.New("going home")
	for _, jobs := range [][]int{nil, {1}} {
		synctest.Test(t, func(t *testing.T) {
			q := queueOf(jobs...)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			err := q.Consume(ctx, 2, 1, func(ctx context.Context, _ []int) error { <-ctx.Done(); return errBoom })
			assert.ErrorIs(t, err, cause)
			assert.ErrorIs(t, err, context.Canceled)
			assert.NotErrorIs(t, err, errBoom)
			assert.Equal(t, len(jobs), len(q.Queued()))
		})
	}
}

// A consumer that waits for jobs lends its slot to who makes them.
func TestTakeLendsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			taken := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return q.Take(ctx, 1) })
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { q.Add(1); return nil })
			jobs, err := taken.Wait(ctx)
			assert.Equal(t, []int{1}, jobs)
			return err
		}, async.Limit(1)))
	})
}

// A waiter whose ctx ends in the instant in which it is served gives the jobs
// on: to who waits next, or back.
func TestAServedWaiterThatIsCancelledGivesTheJobsOn(t *testing.T) {
	for range 300 {
		q := jobqueue.New[int]()
		var got atomic.Int32
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			dying, cancel := context.WithCancel(ctx)
			first := async.Start(ctx, func(ctx context.Context) error {
				return async.Scope(dying, func(ctx context.Context) error {
					_, err := q.Take(ctx, 1)
					if err == nil {
						<-ctx.Done() // it has one, and gives it back
					}
					return err
				})
			})
			async.Go(ctx, func(ctx context.Context) error {
				jobs, err := q.Take(ctx, 1)
				got.Add(int32(len(jobs)))
				return err
			})
			async.Go(ctx, func(context.Context) error { cancel(); return nil })
			q.Add(1)
			_, _ = first.Wait(ctx)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, int32(1), got.Load())
		require.Empty(t, q.Queued())
	}
}

// With a ctx that is done nothing is taken, although there are jobs.
func TestTakeWithADoneContextTakesNothing(t *testing.T) {
	cause := errors.New("going home")
	q := queueOf(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := async.Scope(ctx, func(ctx context.Context) error {
		cancel(cause)
		jobs, err := q.Take(ctx, 1)
		assert.Empty(t, jobs)
		assert.ErrorIs(t, err, cause)
		assert.ErrorIs(t, err, context.Canceled)
		return err
	})
	assert.ErrorIs(t, err, cause)
	assert.Zero(t, q.Stats().Taken)
}

// Whoever was handed the ctx of a scope by mistake is told when that has ended,
// before or while it waits, and the scope is none the worse for it.
func TestTakeOfAnEndedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int]()
		told := make(chan error, 1)
		var stray context.Context
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			stray = ctx
			go func() { _, err := q.Take(ctx, 1); told <- err }()
			synctest.Wait()
			return nil
		}))
		assert.ErrorIs(t, <-told, async.ErrScopeEnded)
		q.Add(1)
		_, err := q.Take(stray, 1)
		assert.ErrorIs(t, err, async.ErrScopeEnded)
		assert.Equal(t, []int{1}, q.Queued())
	})
}
