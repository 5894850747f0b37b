package jobqueue_test

import (
	"context"
	"errors"
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
