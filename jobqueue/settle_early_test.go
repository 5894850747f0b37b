package jobqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Some jobs may be settled before the scope ends; the end decides about the
// rest.
func TestAckAndNackSettleEarly(t *testing.T) {
	q := queueOf(1, 2, 3, 4)
	err := q.Do(t.Context(), 3, func(ctx context.Context, jobs []int) error {
		q.Ack(ctx, 1, 99)
		assert.Equal(t, []int{2, 3}, q.InProgress())
		assert.True(t, q.Add(1), "it is done")
		q.Nack(ctx, errBoom, 3)
		assert.Equal(t, []int{3, 4, 1}, q.Queued())
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{2, 3, 4, 1}, q.Queued())
}

// To name a job twice is to name it once.
func TestAJobNamedTwiceIsSettledOnce(t *testing.T) {
	for name, q := range map[string]*jobqueue.Queue[int, int]{
		"plain":   jobqueue.New[int](),
		"delayed": jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour))),
	} {
		t.Run(name, func(t *testing.T) {
			q.AddAll(1, 2, 3)
			require.NoError(t, q.Do(t.Context(), 3, func(ctx context.Context, _ []int) error {
				q.Ack(ctx, 1, 1)
				q.Nack(ctx, errBoom, 2, 2)
				q.Nack(ctx, nil, 3, 3)
				assert.Empty(t, q.InProgress())
				return nil
			}))
			assert.ElementsMatch(t, []int{2, 3}, q.Queued())
			s := q.Stats()
			assert.Equal(t, [3]uint64{1, 1, 2}, [3]uint64{s.Done, s.Failed, s.Returned})
			q.Close()
		})
	}
}

// Tasks that a consumer has started may settle what it took. A stranger may
// not, nor may the scope around.
func TestHoldersAreLookedForOutwards(t *testing.T) {
	q := queueOf(1, 2, 3)
	err := async.Scope(t.Context(), func(outer context.Context) error {
		return async.Scope(outer, func(ctx context.Context) error {
			jobs, err := q.Take(ctx, 3)
			require.NoError(t, err)

			q.Ack(outer, jobs...)
			q.Ack(context.Background(), jobs...)
			q.Nack(outer, errBoom, jobs...)
			require.NoError(t, async.Scope(outer, func(sibling context.Context) error {
				q.Ack(sibling, jobs...)
				return nil
			}))
			assert.Equal(t, jobs, q.InProgress(), "nobody who may had a say yet")

			for _, job := range jobs {
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(context.WithoutCancel(ctx), func(ctx context.Context) error {
						q.Ack(ctx, job)
						return nil
					})
				})
			}
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				assert.Empty(t, q.InProgress())
				return errBoom
			})
			return nil
		})
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, uint64(3), q.Stats().Done)
}

// Each scope settles what it took itself: the inner one's success is not the
// outer one's, nor the other way round.
func TestEachScopeSettlesItsOwn(t *testing.T) {
	q := queueOf(1, 2)
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		_, err := q.Take(ctx, 1)
		require.NoError(t, err)
		require.NoError(t, q.Do(ctx, 1, func(context.Context, []int) error { return nil }))
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{1}, q.Queued())
}

// A job is settled once. Later words, of others or for another run, change
// nothing.
func TestAJobIsSettledOnce(t *testing.T) {
	q := queueOf(1, 2)
	err := q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
		q.Ack(ctx, 1)
		q.Ack(ctx, 1)
		q.Nack(ctx, errBoom, 1)
		assert.Equal(t, []int{2}, q.Queued())
		assert.True(t, q.Add(1))
		q.Ack(ctx, 1)
		q.Nack(ctx, errBoom, 1)
		assert.Equal(t, []int{2, 1}, q.Queued(), "this one nobody has taken")
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	s := q.Stats()
	assert.Equal(t, uint64(1), s.Done)
	assert.Zero(t, s.Failed)
}
