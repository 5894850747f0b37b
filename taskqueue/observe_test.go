package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// told gathers events as "kind id".
type told struct {
	mu     sync.Mutex
	events []taskqueue.Event
}

func (o *told) observe(e taskqueue.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *told) of(id string) (kinds []taskqueue.EventKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.ID == id {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func observed(t *testing.T, s taskqueue.Store) (*taskqueue.Queue, *told) {
	o := new(told)
	q, err := taskqueue.New(s, taskqueue.Observe(o.observe))
	require.NoError(t, err)
	return q, o
}

// One start and one end for each run; the end is told when the store knows.
func TestTheObserverIsToldOfEveryRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		q, o := observed(t, s)
		handlers := taskqueue.Handlers{
			"done":    nothing,
			"fails":   returns(errBoom),
			"dead":    returns(taskqueue.Dead(errBoom)),
			"last":    returns(errBoom),
			"release": returns(taskqueue.Release(errBoom)),
			"snooze":  returns(taskqueue.Snooze(time.Hour)),
		}
		want := map[string][]taskqueue.EventKind{
			"done":    {taskqueue.EventStarted, taskqueue.EventDone},
			"fails":   {taskqueue.EventStarted, taskqueue.EventFailed},
			"dead":    {taskqueue.EventStarted, taskqueue.EventFailed, taskqueue.EventDead},
			"last":    {taskqueue.EventStarted, taskqueue.EventFailed, taskqueue.EventDead},
			"release": {taskqueue.EventStarted, taskqueue.EventReleased},
			"snooze":  {taskqueue.EventStarted, taskqueue.EventReleased},
			"nobody":  {taskqueue.EventUnknown},
		}
		for id := range want {
			task := taskqueue.Task{ID: id, Type: id, Retention: time.Hour}
			if id == "last" {
				task.MaxFailures = 1
			}
			add(t, q, task)
		}
		require.NoError(t, q.Work(t.Context(), handlers, taskqueue.WorkUntilEmpty()))
		for id, kinds := range want {
			assert.Equal(t, kinds, o.of(id), id)
		}
		for _, e := range o.events {
			assert.Equal(t, taskqueue.DefaultQueue, e.Queue)
			assert.Equal(t, e.ID, e.Type)
			assert.False(t, e.At.IsZero())
			assert.Equal(t, slices.Contains([]taskqueue.EventKind{"failed", "dead", "unknown", "released"}, e.Kind), e.Err != nil, "%+v", e)
		}
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, stats.Counts[taskqueue.CountUnhandled], "Stats say it, too")
		i, err := q.Get(t.Context(), "nobody")
		require.NoError(t, err)
		assert.Contains(t, i.LastError, `no handler for type "nobody"`)
	})
}

func TestTheObserverIsToldOfACancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, o := observed(t, memstore.New())
		id := add(t, q, taskqueue.Task{Type: "t"})
		time.AfterFunc(time.Second, func() { _, _ = q.Cancel(t.Context(), id) })
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			return async.Sleep(ctx, time.Hour)
		}}, taskqueue.WorkUntilEmpty()))
		assert.Equal(t, []taskqueue.EventKind{taskqueue.EventStarted, taskqueue.EventCancelled}, o.of(id))
	})
}

// From the store the worker hears of tasks that no handler has done.
func TestTheObserverIsToldWhatAClaimHasBuriedAndTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		q, o := observed(t, s)
		add(t, q, taskqueue.Task{ID: "poison", Type: "t", MaxCrashes: 1})
		_, err := s.Claim(t.Context(), store.ClaimRequest{Queue: q.Name(), Worker: "dies", Nonce: "1", Max: 1, Lease: time.Second})
		require.NoError(t, err)
		require.NoError(t, q.Configure(t.Context(), func(set *taskqueue.Settings) { set.DeadRetention = 2 * time.Minute }))
		work, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": nothing}))
		assert.Equal(t, []taskqueue.EventKind{taskqueue.EventDead}, o.of("poison"))
		last := o.events[len(o.events)-1]
		assert.Equal(t, taskqueue.EventTrimmed, last.Kind)
		assert.Equal(t, 1, last.N)
	})
}

// A panic of what the user gives beside handlers stops the worker. Nothing is lost,
// and Work panics when all is settled.
func TestAPanicBesideTheHandlersGoesOnInWorkWhenAllIsSettled(t *testing.T) {
	for _, what := range []string{"started", "done", "failed", "backoff"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				q, err := taskqueue.New(s, taskqueue.Observe(func(e taskqueue.Event) {
					if string(e.Kind) == what {
						panic(errBoom)
					}
				}))
				require.NoError(t, err)
				good, bad := add(t, q, taskqueue.Task{Type: "good"}), add(t, q, taskqueue.Task{Type: "bad"})
				backoff := taskqueue.Backoff(func(int) time.Duration {
					if what == "backoff" {
						panic(errBoom)
					}
					return time.Hour
				})
				var raised any
				func() {
					defer func() { raised = recover() }()
					_ = q.Work(t.Context(), taskqueue.Handlers{"good": func(ctx context.Context, _ *taskqueue.Claim) error {
						return async.Sleep(ctx, time.Second) // it has the grace
					}, "bad": returns(errBoom)}, backoff)
				}()
				err, is := raised.(error)
				require.True(t, is, "%v", raised)
				assert.ErrorIs(t, err, errBoom)
				assert.Contains(t, err.Error(), "has panicked: boom")
				assert.Contains(t, err.Error(), "observe_test.go", "it tells where")
				i, err := q.Get(t.Context(), good)
				require.NoError(t, err)
				assert.Equal(t, taskqueue.StateDone, i.State)
				i, err = q.Get(t.Context(), bad)
				require.NoError(t, err)
				assert.False(t, i.State.Ended())
				assert.Equal(t, 1, i.Failures)
			})
		})
	}
}

// An observer that ends its goroutine, as t.FailNow does, ends the worker.
func TestGoexitOfTheObserverEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := taskqueue.New(memstore.New(), taskqueue.Observe(func(e taskqueue.Event) { runtime.Goexit() }))
		require.NoError(t, err)
		add(t, q, taskqueue.Task{Type: "t"})
		assert.ErrorIs(t, q.Work(t.Context(), taskqueue.Handlers{"t": nothing}), async.ErrGoexit)
	})
}

func TestAnObserverMayCallTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *taskqueue.Queue
		s := memstore.New()
		q, err := taskqueue.New(s, taskqueue.Observe(func(e taskqueue.Event) {
			if e.Kind == taskqueue.EventStarted && e.Type == "t" {
				_, err := q.Enqueue(t.Context(), taskqueue.Task{Type: "next"})
				assert.NoError(t, err)
			}
		}))
		require.NoError(t, err)
		add(t, q, taskqueue.Task{Type: "t"})
		ran := 0
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": nothing, "next": func(context.Context, *taskqueue.Claim) error { ran++; return nil }}, taskqueue.WorkUntilEmpty()))
		assert.Equal(t, 1, ran)
	})
}

// The observer hears that the store is down, and of what could not be told to it.
func TestTheObserverIsToldOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &outage{Store: memstore.New()}
		q, o := observed(t, s)
		id := add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		err := q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			s.set(true, false)
			stop()
			return nil
		}}, taskqueue.Lease(time.Second), taskqueue.ShutdownGrace(0))
		var unsettled *taskqueue.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		assert.Equal(t, []string{id}, unsettled.IDs)
		kinds := o.of(id)
		assert.Equal(t, taskqueue.EventLost, kinds[len(kinds)-1])
		assert.True(t, slices.ContainsFunc(o.events, func(e taskqueue.Event) bool { return e.Kind == taskqueue.EventStore && errors.Is(e.Err, errDown) }))
		assert.Contains(t, strings.Join([]string{fmt.Sprint(err)}, ""), id)
	})
}

// The run fails by itself, or is given back, before its worker has heard of the Cancel: the store
// has the last word, and the task is no dead letter and does not run again.
func TestTheObserverIsToldOfACancelThatTheWorkerHasNotHeardOf(t *testing.T) {
	for name, end := range map[string]error{"fails": errBoom, "is dead": taskqueue.Dead(errBoom), "is given back": taskqueue.Release(errBoom)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, o := observed(t, memstore.New())
				id := add(t, q, taskqueue.Task{Type: "t", MaxFailures: 1})
				require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
					asked, err := q.Cancel(ctx, c.ID)
					assert.True(t, asked)
					assert.NoError(t, err)
					return end
				}}, taskqueue.WorkUntilEmpty()))
				assert.Equal(t, []taskqueue.EventKind{taskqueue.EventStarted, taskqueue.EventCancelled}, o.of(id))
				i, err := q.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, taskqueue.StateCancelled, i.State)
			})
		})
	}
}
