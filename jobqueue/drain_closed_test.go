package jobqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Whether a queue was closed with jobs left is decided when the drain ends. A job that
// is removed after the end, before Drain has returned, was left all the same.
func TestWhatIsRemovedAfterADrainHasEndedWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *jobqueue.Queue[int, int]
		q = jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) {
			if e.Kind == jobqueue.Failed { // it is called before Drain is woken
				assert.True(t, q.Remove(e.Job))
			}
		}))
		q.Add(1)
		drained := make(chan *async.Future[struct{}], 1)
		err := q.Do(t.Context(), 1, func(context.Context, []int) error {
			drained <- async.Start(t.Context(), q.Drain)
			synctest.Wait()
			q.Close()
			return errBoom
		})
		assert.ErrorIs(t, err, errBoom)
		_, err = (<-drained).Wait(t.Context())
		assert.ErrorIs(t, err, jobqueue.ErrClosed)
	})
}

// The drain has ended, and the ctx of Drain is done before it has heard of that.
func TestADrainThatHasEndedIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, cancel := context.WithCancel(t.Context())
		var q *jobqueue.Queue[int, int]
		var drained *async.Future[struct{}]
		q = jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) {
			if e.Kind == jobqueue.Done {
				cancel()
				synctest.Wait()
				assert.True(t, isDone(drained))
			}
		}))
		q.Add(1)
		assert.NoError(t, q.Do(t.Context(), 1, func(context.Context, []int) error {
			drained = async.Start(t.Context(), func(context.Context) error { return q.Drain(mine) })
			synctest.Wait()
			return nil
		}))
		_, err := drained.Wait(t.Context())
		assert.NoError(t, err)
	})
}
