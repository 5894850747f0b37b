package taskqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// aQueue has a task that waits for an hour, and a dead letter.
func aQueue() *taskqueue.Queue {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	_, _ = q.EnqueueAll(ctx, []taskqueue.Task{{ID: "later", Type: "ok", Delay: time.Hour, Retention: time.Hour}, {ID: "dead", Type: "bad"}})
	_ = q.Work(ctx, okAndBad, taskqueue.WorkUntilEmpty())
	return q
}

var okAndBad = taskqueue.Handlers{
	"ok":  func(context.Context, *taskqueue.Claim) error { return nil },
	"bad": func(context.Context, *taskqueue.Claim) error { return taskqueue.Dead(errors.New("bad")) },
}

func ExampleQueue_Get() {
	q := aQueue()
	i, err := q.Get(context.Background(), "dead")
	fmt.Println(i.State, i.Failures, i.LastError, err)
	_, err = q.Get(context.Background(), "nobody")
	fmt.Println(errors.Is(err, taskqueue.ErrNotFound))
	// Output:
	// dead 1 bad <nil>
	// true
}

// Page by page.
func ExampleQueue_List() {
	q := aQueue()
	for r := (taskqueue.ListRequest{State: taskqueue.StateScheduled, Max: 100}); ; {
		page, err := q.List(context.Background(), r)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, i := range page.Tasks {
			fmt.Println(i.ID, i.Type)
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return
		}
	}
	// Output: later ok
}

func ExampleQueue_Stats() {
	s, err := aQueue().Stats(context.Background())
	fmt.Println(s.States[taskqueue.StateScheduled], s.States[taskqueue.StateDead], s.Counts[taskqueue.CountAdded], err)
	// Output: 1 1 2 <nil>
}

func ExampleQueue_Cancel() {
	q := aQueue()
	fmt.Println(q.Cancel(context.Background(), "later"))
	i, _ := q.Get(context.Background(), "later")
	fmt.Println(i.State)
	fmt.Println(q.Cancel(context.Background(), "later"))
	// Output:
	// true <nil>
	// cancelled
	// false <nil>
}

func ExampleQueue_Promote() {
	q := aQueue()
	fmt.Println(q.Promote(context.Background(), "later"))
	i, _ := q.Get(context.Background(), "later")
	fmt.Println(i.State)
	// Output:
	// true <nil>
	// ready
}

func ExampleQueue_Retry() {
	q := aQueue()
	fmt.Println(q.Retry(context.Background(), "dead"))
	i, _ := q.Get(context.Background(), "dead")
	fmt.Println(i.State, i.Failures)
	// Output:
	// true <nil>
	// ready 0
}

func ExampleQueue_Delete() {
	q := aQueue()
	fmt.Println(q.Delete(context.Background(), "dead"))
	fmt.Println(q.Delete(context.Background(), "dead"))
	// Output:
	// true <nil>
	// false taskqueue: there is no such task
}

func ExampleQueue_Purge() {
	fmt.Println(aQueue().Purge(context.Background(), taskqueue.StateDead))
	// Output: 1 <nil>
}

// A task that runs goes on; nothing is begun until Resume.
func ExampleQueue_Pause() {
	q := aQueue()
	fmt.Println(q.Pause(context.Background()))
	s, _ := q.Stats(context.Background())
	fmt.Println(s.Settings.Paused)
	// Output:
	// <nil>
	// true
}

func ExampleQueue_Resume() {
	q := aQueue()
	_ = q.Pause(context.Background())
	fmt.Println(q.Resume(context.Background()))
	// Output: <nil>
}

// For all workers of all processes: ten tasks a second, and three at a time.
func ExampleQueue_Configure() {
	q := aQueue()
	err := q.Configure(context.Background(), func(s *taskqueue.Settings) {
		s.Rate, s.Burst, s.Concurrency = 10, 5, 3
		s.MaxDead, s.DeadRetention = 10_000, 30*24*time.Hour
	})
	fmt.Println(err)
	err = q.Configure(context.Background(), func(s *taskqueue.Settings) { s.Rate = -1 })
	fmt.Println(err)
	// Output:
	// <nil>
	// taskqueue: Rate: it is -1: it must be a number of claims a second, or 0 for no limit
}

func ExampleQueue_Wait() {
	q := aQueue()
	i, err := q.Wait(context.Background(), "dead")
	fmt.Println(i.State, i.LastError, err)
	// Output: dead bad <nil>
}

func ExampleParseState() {
	fmt.Println(taskqueue.ParseState("retrying"))
	_, err := taskqueue.ParseState("gone")
	fmt.Println(err)
	// Output:
	// retrying <nil>
	// taskqueue: state: there is no "gone": use one of scheduled, ready, running, retrying, done, dead, cancelled, waiting
}

func ExampleState_String() {
	fmt.Println(taskqueue.StateReady, taskqueue.State(99))
	// Output: ready State(99)
}

func ExampleState_Ended() {
	fmt.Println(taskqueue.StateRetrying.Ended(), taskqueue.StateDead.Ended())
	// Output: false true
}

func ExampleState_MarshalText() {
	b, err := json.Marshal(map[taskqueue.State]int{taskqueue.StateDone: 3})
	fmt.Println(string(b), err)
	// Output: {"done":3} <nil>
}

func ExampleState_UnmarshalText() {
	var s taskqueue.State
	fmt.Println(json.Unmarshal([]byte(`"dead"`), &s), s)
	// Output: <nil> dead
}

func ExamplePeriodic_Next() {
	job := taskqueue.Periodic{Name: "nightly", Schedule: "30 2 * * MON-FRI"}
	fmt.Println(job.Next(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))) // a Friday
	// Output: 2026-11-30 02:30:00 +0000 UTC
}
