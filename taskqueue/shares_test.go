package taskqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// There are fewer places than queues, and every queue has more to do than can be done.
func TestNoQueueStarvesWhereThereAreFewerPlacesThanQueues(t *testing.T) {
	weights := map[string]int{"a": 10, "b": 4, "c": 2, "d": 1, "e": 1, "f": 1, "g": 1}
	for _, places := range []int{1, 2, 3} {
		for name, order := range map[string][]taskqueue.WorkOption{"strict": nil, "weighted": {taskqueue.Weighted()}} {
			t.Run(fmt.Sprint(places, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q, _ := newQueue(t)
					for queue := range weights {
						var tasks []taskqueue.Task
						for range 300 {
							tasks = append(tasks, taskqueue.Task{Type: "t", Queue: queue})
						}
						_, err := q.EnqueueAll(t.Context(), tasks)
						require.NoError(t, err)
					}
					var mu sync.Mutex
					runs, all := map[string]int{}, 0
					work, stop := context.WithCancel(t.Context())
					defer stop()
					handler := func(_ context.Context, c *taskqueue.Claim) error {
						mu.Lock()
						runs[c.Queue]++
						if all++; all == 200 {
							stop()
						}
						mu.Unlock()
						time.Sleep(time.Second)
						return nil
					}
					opts := append(order, taskqueue.Queues(weights), taskqueue.Concurrency(places))
					require.NoError(t, q.Work(work, taskqueue.Handlers{"t": handler}, opts...))
					for queue, weight := range weights {
						assert.InDelta(t, 200*weight/20, runs[queue], 4, "queue %s: %v", queue, runs)
					}
				})
			})
		}
	}
}

// The part of a store that has one of the queues does not answer.
type oneHangs struct {
	taskqueue.Store
	queue string
}

func (s oneHangs) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	if r.Queue == s.queue {
		<-ctx.Done()
		return taskqueue.Claimed{}, ctx.Err()
	}
	return s.Store.Claim(ctx, r)
}

func TestAQueueWhoseStoreHangsKeepsItsPlaceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := taskqueue.New(oneHangs{memstore.New(), "hangs"})
		require.NoError(t, err)
		for range 100 {
			for _, queue := range []string{"a", "b"} {
				_, err := q.Enqueue(t.Context(), taskqueue.Task{Type: "t", Queue: queue})
				require.NoError(t, err)
			}
		}
		work, cancel := context.WithTimeout(t.Context(), 200*time.Second)
		defer cancel()
		var mu sync.Mutex // while a claim of the queue that hangs is tried again the others have its place
		runs := map[string]int{}
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			mu.Lock()
			runs[c.Queue]++
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		}}, taskqueue.Queues(map[string]int{"a": 1, "b": 1, "hangs": 5}), taskqueue.Concurrency(2)))
		assert.InDelta(t, 100, runs["a"], 5, "%v", runs)
		assert.InDelta(t, 100, runs["b"], 5, "%v", runs)
	})
}

// A queue that had nothing to do for a long time has saved nothing up.
func TestAQueueThatWasIdleTakesNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		enqueue := func(queue string, delay time.Duration) {
			for range 300 {
				_, err := q.Enqueue(t.Context(), taskqueue.Task{Type: "t", Queue: queue, Delay: delay})
				require.NoError(t, err)
			}
		}
		enqueue("busy", 0)
		enqueue("late", 100*time.Second)
		work, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		runs := map[string]int{}
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			runs[c.Queue]++
			time.Sleep(time.Second)
			return nil
		}}, taskqueue.Queues(map[string]int{"busy": 1, "late": 1}), taskqueue.Concurrency(1)))
		assert.InDelta(t, 25, runs["late"], 3, "%v", runs)
	})
}
