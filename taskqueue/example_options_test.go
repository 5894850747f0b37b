package taskqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// works has some tasks run with the options, which print their payloads.
func works(tasks []taskqueue.Task, opts ...taskqueue.WorkOption) {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	for i := range tasks {
		tasks[i].Type = "t"
	}
	_, _ = q.EnqueueAll(ctx, tasks)
	err := q.Work(ctx, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		fmt.Print(string(c.Payload), " ")
		return nil
	}}, append(opts, taskqueue.WorkUntilEmpty())...)
	fmt.Println(err)
}

var ab = []taskqueue.Task{{Payload: []byte("a")}, {Payload: []byte("b")}}

// One at a time, in the order in which they are due.
func ExampleConcurrency() {
	works(ab, taskqueue.Concurrency(1))
	// Output: a b <nil>
}

// Three of four places are for mail, as long as there is some, and one is for the rest.
func ExampleQueues() {
	works(ab[:1], taskqueue.Queues(map[string]int{"mail": 3, "default": 1}), taskqueue.Concurrency(4))
	q, _ := taskqueue.New(memstore.New())
	fmt.Println(q.Work(context.Background(), okAndBad, taskqueue.Queues(map[string]int{"mail": 0})))
	// Output:
	// a <nil>
	// taskqueue: Queues: the weight of mail is 0: it must be at least 1, or leave the queue out
}

// The tasks of a worker that dies run again after five seconds.
func ExampleLease() {
	works(ab, taskqueue.Lease(5*time.Second), taskqueue.Concurrency(1))
	// Output: a b <nil>
}

// The task is given 10 ms when the worker is told to stop, then it is cancelled, and
// given back.
func ExampleShutdownGrace() {
	q, _ := taskqueue.New(memstore.New())
	ctx, stop := context.WithCancel(context.Background())
	id, _ := q.Enqueue(ctx, taskqueue.Task{Type: "long"})
	err := q.Work(ctx, taskqueue.Handlers{"long": func(ctx context.Context, _ *taskqueue.Claim) error {
		stop()
		err := async.Sleep(ctx, time.Hour)
		fmt.Println(context.Cause(ctx))
		return err
	}}, taskqueue.ShutdownGrace(10*time.Millisecond))
	i, _ := q.Get(context.Background(), id)
	fmt.Println(i.State, i.Attempt, err)
	// Output:
	// taskqueue: the worker stops
	// ready 0 <nil>
}

// The tasks that have failed run again at once, up to their MaxFailures.
func ExampleBackoff() {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	_, _ = q.Enqueue(ctx, taskqueue.Task{Type: "t", MaxFailures: 3})
	_ = q.Work(ctx, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		fmt.Println("run", c.Attempt)
		return fmt.Errorf("no")
	}}, taskqueue.Backoff(func(failures int) time.Duration { return 0 }), taskqueue.WorkUntilEmpty())
	// Output:
	// run 1
	// run 2
	// run 3
}

func ExampleDefaultBackoff() {
	for _, failures := range []int{1, 5, 100} {
		d := taskqueue.DefaultBackoff(failures)
		fmt.Println(failures, d >= 750*time.Millisecond, d <= 75*time.Minute)
	}
	// Output:
	// 1 true true
	// 5 true true
	// 100 true true
}

// Less urgent tasks have a chance while there are more urgent ones.
func ExampleWeighted() {
	works([]taskqueue.Task{{Payload: []byte("a")}}, taskqueue.Weighted())
	// Output: a <nil>
}

// A test adds tasks, and has them run on its own goroutine.
func ExampleWorkUntilEmpty() {
	works(append(ab, taskqueue.Task{Payload: []byte("tomorrow"), Delay: 24 * time.Hour}), taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(1))
	// Output: a b <nil>
}

func ExampleWorkerName() {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	id, _ := q.Enqueue(ctx, taskqueue.Task{Type: "ok", Retention: time.Hour})
	_ = q.Work(ctx, okAndBad, taskqueue.WorkerName("rack 7"), taskqueue.WorkUntilEmpty())
	i, _ := q.Get(ctx, id)
	fmt.Println(i.Worker)
	// Output: rack 7
}
