package jobqueue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// The observer is told of everything, in order, with no lock held.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var q *jobqueue.Queue[int, int]
		q = jobqueue.New[int](
			jobqueue.Capacity(3),
			jobqueue.MaxAttempts(2, func(int, error) { told = append(told, "buried") }),
			jobqueue.Observe(func(e jobqueue.Event[int]) {
				q.Len() // it would hang if the lock were held
				told = append(told, fmt.Sprint(e.Kind, e.Job, " ", e.Attempt, " ", e.Queued, " ", e.Ran, " ", e.Err))
			}))
		ctx, cancel := context.WithCancel(t.Context())
		say := func(want ...string) {
			t.Helper()
			assert.Equal(t, want, told)
			told = nil
		}
		q.AddAll(1, 1, 2)
		q.AddAfter(time.Minute, 3)
		q.Add(4)
		say("added 1 0 0s 0s <nil>", "rejected 1 0 0s 0s jobqueue: duplicate job", "added 2 0 0s 0s <nil>",
			"added 3 0 0s 0s <nil>", "rejected 4 0 0s 0s jobqueue: queue full")
		q.Remove(3)
		say("removed 3 0 0s 0s <nil>")
		time.Sleep(time.Second)
		_ = q.Do(ctx, 2, func(ctx context.Context, _ []int) error {
			say("taken 1 1 1s 0s <nil>", "taken 2 1 1s 0s <nil>")
			time.Sleep(2 * time.Second)
			q.Ack(ctx, 2)
			say("done 2 1 0s 2s <nil>")
			return errBoom
		})
		say("failed 1 1 0s 2s boom")
		_ = q.Do(ctx, 1, func(ctx context.Context, _ []int) error { cancel(); return nil })
		say("taken 1 2 0s 0s <nil>", "stopped 1 2 0s 0s context canceled")
		_ = q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error { return errBoom })
		say("taken 1 3 0s 0s <nil>", "dead 1 3 0s 0s boom", "buried")
		q.Close()
		q.Add(1)
		say("rejected 1 0 0s 0s jobqueue: queue closed")
	})
}

// Who waits is served by another's call, whose goroutine tells of it.
func TestObserveTellsOfHandOffs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []jobqueue.EventKind
		q := jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) { told = append(told, e.Kind) }))
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			looked := make(chan struct{})
			async.Go(ctx, func(ctx context.Context) error {
				_, err := q.Take(ctx, 1)
				<-looked
				return err
			})
			synctest.Wait()
			q.Add(1)
			assert.Equal(t, []jobqueue.EventKind{jobqueue.Added, jobqueue.Taken}, told)
			close(looked)
			return nil
		})
		assert.Equal(t, jobqueue.Done, told[2])
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobqueue.New[int](jobqueue.MaxAttempts[int](2, nil))
		q.AddAll(1, 1, 2, 3)
		time.Sleep(time.Second)
		_ = q.Do(t.Context(), 2, func(ctx context.Context, _ []int) error {
			time.Sleep(time.Minute)
			q.Ack(ctx, 1)
			return errBoom
		})
		_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
		q.Remove(3)
		assert.Equal(t, jobqueue.Stats{
			Added: 3, Duplicates: 1, Taken: 3, Done: 1, Failed: 2, Returned: 1, Dead: 1, Removed: 1,
			QueuedTime: 2 * time.Second, InProgressTime: 2 * time.Minute,
		}, q.Stats())
	})
}
