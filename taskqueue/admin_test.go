package taskqueue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

func TestWaitReturnsHowATaskHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		keep := taskqueue.Task{Retention: time.Hour, Delay: time.Minute}
		ids := map[string]string{}
		for _, what := range []string{"done", "dead", "cancelled"} {
			keep.Type = what
			ids[what] = add(t, q, keep)
		}
		work, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			defer stop()
			i, err := q.Wait(t.Context(), ids["done"])
			assert.NoError(t, err)
			assert.Equal(t, taskqueue.StateDone, i.State)
			assert.Equal(t, "result", string(i.Result))
			i, err = q.Wait(t.Context(), ids["dead"])
			assert.NoError(t, err)
			assert.Equal(t, taskqueue.StateDead, i.State)
			assert.Equal(t, "boom", i.LastError)
			_, err = q.Cancel(t.Context(), ids["cancelled"])
			assert.NoError(t, err)
			i, err = q.Wait(t.Context(), ids["cancelled"])
			assert.NoError(t, err)
			assert.Equal(t, taskqueue.StateCancelled, i.State)
			_, err = q.Wait(t.Context(), "nobody")
			assert.ErrorIs(t, err, taskqueue.ErrNotFound)
		}()
		require.NoError(t, q.Work(work, taskqueue.Handlers{
			"done":      func(_ context.Context, c *taskqueue.Claim) error { c.SetResult([]byte("result")); return nil },
			"dead":      returns(taskqueue.Dead(errBoom)),
			"cancelled": returns(taskqueue.Snooze(time.Hour)),
		}))
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(errBoom) })
		i, err := q.Wait(ctx, id)
		assert.Equal(t, errBoom, err)
		assert.Equal(t, taskqueue.StateReady, i.State, "as it was seen last")
	})
}

// A task that was done or cancelled is kept for its Retention, at least a minute, and a dead
// letter until somebody deletes it.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		add(t, q, taskqueue.Task{ID: "short", Type: "t"})
		add(t, q, taskqueue.Task{ID: "longer", Type: "t", Retention: 4 * time.Minute})
		add(t, q, taskqueue.Task{ID: "dead", Type: "dead", Retention: 4 * time.Minute})
		work, stop := context.WithCancel(t.Context())
		begin := time.Now()
		gone := map[string]time.Duration{}
		go func() {
			defer stop()
			for range 6 * 60 {
				time.Sleep(time.Second)
				for _, id := range []string{"short", "longer", "dead"} {
					if _, err := q.Get(t.Context(), id); err != nil && gone[id] == 0 {
						gone[id] = time.Since(begin)
					}
				}
			}
		}()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": nothing, "dead": returns(taskqueue.Dead(errBoom))}))
		assert.InDelta(t, 60, gone["short"].Seconds(), 2)
		assert.InDelta(t, 240, gone["longer"].Seconds(), 2)
		assert.NotContains(t, gone, "dead")
	})
}

func TestARetryThatIsADuplicateSaysOfWhich(t *testing.T) {
	q, _ := newQueue(t)
	id := add(t, q, taskqueue.Task{Type: "t", UniqueKey: "k"})
	ok, err := q.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, ok)
	holder := add(t, q, taskqueue.Task{Type: "t", UniqueKey: "k"})
	ok, err = q.Retry(t.Context(), id)
	assert.False(t, ok)
	var held *taskqueue.DuplicateError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, holder, held.Holder)
	_, err = q.Enqueue(t.Context(), taskqueue.Task{Type: "t", UniqueKey: "k"})
	require.ErrorAs(t, err, &held)
	assert.Equal(t, holder, held.Holder)
}

// The user is called with no lock held: f may ask the queue.
func TestConfigureMayAskTheQueue(t *testing.T) {
	q, _ := newQueue(t)
	calls := 0
	require.NoError(t, q.Configure(t.Context(), func(s *taskqueue.Settings) {
		if calls++; calls == 1 { // somebody else is faster
			require.NoError(t, q.Configure(t.Context(), func(s *taskqueue.Settings) { s.MaxDead = 7 }))
		}
		s.Concurrency = 3
	}))
	assert.Equal(t, 2, calls)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, taskqueue.Settings{Concurrency: 3, MaxDead: 7}, stats.Settings)
	assert.Panics(t, func() { _ = q.Configure(t.Context(), nil) })
	assert.Panics(t, func() { _ = q.Configure(t.Context(), func(*taskqueue.Settings) { panic(errBoom) }) })
	require.NoError(t, q.Pause(t.Context()), "after a panic it is as before")
}

func TestEnqueueAllIsAtomicForEachQueue(t *testing.T) {
	q, _ := newQueue(t)
	tasks := func(n int, queue string) (all []taskqueue.Task) {
		for i := range n {
			all = append(all, taskqueue.Task{ID: fmt.Sprint(i), Type: "t", Queue: queue})
		}
		return all
	}
	_, err := q.EnqueueAll(t.Context(), append(tasks(1, "a"), tasks(taskqueue.MaxBatch+1, "b")...))
	assert.ErrorContains(t, err, "queue b")
	big := tasks(5, "b")
	for i := range big {
		big[i].Payload = make([]byte, taskqueue.MaxPayload)
	}
	_, err = q.EnqueueAll(t.Context(), append(tasks(1, "a"), big...))
	assert.ErrorContains(t, err, "split them")
	_, err = q.EnqueueAll(t.Context(), append(tasks(1, "a"), taskqueue.Task{}))
	assert.ErrorContains(t, err, "Type")
	_, err = q.In("a").Get(t.Context(), "0")
	assert.ErrorIs(t, err, taskqueue.ErrNotFound, "nothing was added")

	results, err := q.EnqueueAll(t.Context(), append(tasks(2, "a"), taskqueue.Task{ID: "1", Type: "t", Queue: "a"},
		taskqueue.Task{Type: "t", ID: "x", UniqueKey: "k"}, taskqueue.Task{Type: "t", UniqueKey: "k"}))
	require.NoError(t, err)
	assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Added, ID: "0"}, {Verdict: taskqueue.Added, ID: "1"}, {Verdict: taskqueue.Exists, ID: "1"},
		{Verdict: taskqueue.Added, ID: "x"}, {Verdict: taskqueue.Duplicate, ID: "x"}}, results)
	results, err = q.EnqueueAll(t.Context(), nil)
	assert.NoError(t, err)
	assert.Empty(t, results)
}

// An answer that got lost: the id is known, and the call is repeated with it.
func TestAnEnqueueWhoseAnswerIsLostIsRepeatedWithItsID(t *testing.T) {
	s := &lostEnqueue{Store: memstore.New(), left: 1}
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	id, err := q.Enqueue(t.Context(), taskqueue.Task{Type: "t"})
	assert.ErrorIs(t, err, errDown)
	require.NotEmpty(t, id)
	again, err := q.Enqueue(t.Context(), taskqueue.Task{ID: id, Type: "t"})
	require.NoError(t, err)
	assert.Equal(t, id, again)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Counts[taskqueue.CountAdded])
}

type lostEnqueue struct {
	taskqueue.Store
	left int
}

func (s *lostEnqueue) Enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	r, err := s.Store.Enqueue(ctx, queue, tasks)
	if s.left--; s.left >= 0 {
		return nil, errDown
	}
	return r, err
}

// The caller may use its slices and maps again.
func TestEnqueueCopiesWhatItIsGiven(t *testing.T) {
	kept := &lostEnqueue{Store: memstore.New()}
	q, err := taskqueue.New(kept)
	require.NoError(t, err)
	task := taskqueue.Task{Type: "t", Payload: []byte("a"), Headers: map[string]string{"k": "a"}}
	require.NoError(t, q.Every("tick", "@every 1s", task))
	id := add(t, q, task)
	task.Payload[0], task.Headers["k"] = 'b', "b"
	i, err := q.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "a", string(i.Payload))
	assert.Equal(t, "a", i.Headers["k"])
}

func TestAQueueThatIsNotThereIsAnEmptyOne(t *testing.T) {
	q, s := newQueue(t)
	q = q.In("nowhere")
	assert.Equal(t, "nowhere", q.Name())
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.States[taskqueue.StateReady])
	page, err := q.List(t.Context(), taskqueue.ListRequest{State: taskqueue.StateReady})
	require.NoError(t, err)
	assert.Empty(t, page.Tasks)
	for _, act := range []func(context.Context, string) (bool, error){q.Cancel, q.Promote, q.Retry, q.Delete} {
		ok, err := act(t.Context(), "nobody")
		assert.False(t, ok)
		assert.ErrorIs(t, err, taskqueue.ErrNotFound)
	}
	n, err := q.Purge(t.Context(), taskqueue.StateReady)
	require.NoError(t, err)
	assert.Zero(t, n)
	ok, err := q.Unschedule(t.Context(), "nothing")
	require.NoError(t, err)
	assert.False(t, ok)
	names, err := s.Queues(t.Context())
	require.NoError(t, err)
	assert.Empty(t, names, "and it is not there because it was asked for")
}
