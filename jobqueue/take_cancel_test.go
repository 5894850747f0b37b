package jobqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A Take or a Drain whose ctx ends has told its caller: the scope, which lives,
// has not failed for that.
func TestACallThatWasCutShortFailsNoScope(t *testing.T) {
	cut := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	for _, c := range []struct {
		name string
		call func(ctx context.Context, q *jobqueue.Queue[int, int]) error
		jobs []int
	}{
		{"Take", func(ctx context.Context, q *jobqueue.Queue[int, int]) error { _, err := q.Take(ctx, 1); return err }, nil},
		{"Drain", func(ctx context.Context, q *jobqueue.Queue[int, int]) error { return q.Drain(ctx) }, []int{1}},
		{"Do", func(ctx context.Context, q *jobqueue.Queue[int, int]) error { return q.Do(ctx, 1, never) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := queueOf(c.jobs...)
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					short, cancel := cut(ctx)
					defer cancel()
					err := c.call(short, q)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return async.Sleep(ctx, time.Minute)
				}))
			})
		})
	}
}

// A Take that gets its jobs in the instant in which its ctx ends fails no scope
// either, whichever of the two it tells.
func TestATakeThatIsServedAsItIsCutShortFailsNoScope(t *testing.T) {
	q := jobqueue.New[int]()
	for i := range 2000 / raceFactor {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			short, cancel := context.WithCancel(ctx)
			go cancel()
			async.Go(ctx, func(context.Context) error { q.Add(i); return nil })
			_, err := q.Take(short, 1)
			if err != nil {
				assert.ErrorIs(t, err, context.Canceled)
			}
			return nil
		}))
		q.Remove(i)
	}
}
