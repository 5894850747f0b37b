package jobqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Four changes of three files are three jobs; consumers work them off until the
// queue is drained.
func Example() {
	q := jobqueue.New[string]()
	for _, file := range []string{"a.jpg", "b.jpg", "a.jpg", "c.jpg"} {
		if !q.Add(file) {
			fmt.Println(file, "is queued already")
		}
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			return q.Consume(ctx, 1, 1, func(ctx context.Context, jobs []string) error {
				fmt.Println("thumbnail of", jobs[0])
				return nil
			})
		})
		return q.Drain(ctx)
	})
	fmt.Println(err, q.Stats().Done)
	// Output:
	// a.jpg is queued already
	// thumbnail of a.jpg
	// thumbnail of b.jpg
	// thumbnail of c.jpg
	// <nil> 3
}

func ExampleNew() {
	q := jobqueue.New[string](jobqueue.Capacity(1))
	fmt.Println(q.Add("a"), q.Add("b"))
	// Output: true false
}

// Jobs are distinct by their key: here the path, whatever its case.
func ExampleNewKeyed() {
	q := jobqueue.NewKeyed(strings.ToLower)
	fmt.Println(q.Add("README"), q.Add("readme"), q.Queued())
	// Output: true false [README]
}

func ExampleQueue_Add() {
	q := jobqueue.New[int]()
	fmt.Println(q.Add(1), q.Add(1))
	// Output: true false
}

func ExampleQueue_AddAll() {
	q := jobqueue.New[int]()
	fmt.Println("rejected:", q.AddAll(1, 2, 1, 3))
	fmt.Println("queued:", q.Queued())
	// Output:
	// rejected: [1]
	// queued: [1 2 3]
}

func ExampleQueue_AddAfter() {
	q := jobqueue.New[string]()
	next := func() {
		_ = q.Do(context.Background(), 1, func(_ context.Context, jobs []string) error {
			fmt.Println(jobs[0])
			return nil
		})
	}
	q.AddAfter(time.Hour, "not within this hour")
	q.Add("now")
	next()
	q.AddAfter(20*time.Millisecond, "later")
	next()
	q.Close()
	// Output:
	// now
	// later
}

// A job that the scope has taken goes back to its place, because the scope fails.
func ExampleQueue_Take() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2, 3)
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		jobs, err := q.Take(ctx, 2)
		if err != nil {
			return err
		}
		fmt.Println("took", jobs)
		return errors.New("no luck")
	})
	fmt.Println(err, q.Queued())
	// Output:
	// took [1 2]
	// no luck [1 2 3]
}

func ExampleQueue_Do() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2, 3)
	err := q.Do(context.Background(), 10, func(_ context.Context, jobs []int) error {
		fmt.Println("working on", jobs)
		return nil
	})
	fmt.Println(err, q.Queued())
	// Output:
	// working on [1 2 3]
	// <nil> []
}

func ExampleQueue_Consume() {
	q := jobqueue.New[int](jobqueue.MaxAttempts(2, func(job int, err error) { fmt.Println("gave up", job, err) }))
	q.AddAll(1, 2)
	err := q.Consume(context.Background(), 1, 1, func(_ context.Context, jobs []int) error {
		fmt.Println("try", jobs[0])
		if jobs[0] == 2 {
			q.Close()
			return nil
		}
		return errors.New("no luck")
	})
	fmt.Println(err)
	// Output:
	// try 1
	// try 1
	// gave up 1 no luck
	// try 2
	// <nil>
}

// Jobs that were done stay done although their batch fails.
func ExampleQueue_Ack() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2, 3)
	_ = q.Do(context.Background(), 3, func(ctx context.Context, jobs []int) error {
		q.Ack(ctx, 1, 2)
		return errors.New("no luck with the rest")
	})
	fmt.Println(q.Queued())
	// Output: [3]
}

// One job of a batch fails and the others are done.
func ExampleQueue_Nack() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2, 3)
	_ = q.Do(context.Background(), 3, func(ctx context.Context, jobs []int) error {
		q.Nack(ctx, errors.New("no luck"), 2)
		return nil
	})
	fmt.Println(q.Queued())
	// Output: [2]
}

func ExampleQueue_Remove() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2)
	fmt.Println(q.Remove(1), q.Remove(1), q.Queued())
	// Output: true false [2]
}

// Jobs that are queued when a queue is closed can be listed.
func ExampleQueue_Close() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2)
	q.Close()
	fmt.Println(q.Add(3), q.Queued())
	fmt.Println(q.Do(context.Background(), 1, func(context.Context, []int) error { return nil }))
	// Output:
	// false [1 2]
	// jobqueue: queue closed
}

func ExampleQueue_Drain() {
	q := jobqueue.New[int]()
	q.Add(1)
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			return q.Consume(ctx, 1, 1, func(context.Context, []int) error { fmt.Println("done"); return nil })
		})
		return q.Drain(ctx)
	})
	fmt.Println(err, q.Add(2))
	// Output:
	// done
	// <nil> false
}

func ExampleQueue_Queued() {
	q := jobqueue.New[int]()
	q.AddAll(1, 2, 3)
	_ = q.Do(context.Background(), 1, func(context.Context, []int) error {
		queued, inProgress := q.Len()
		fmt.Println(q.Queued(), q.InProgress(), queued, inProgress)
		return nil
	})
	// Output: [2 3] [1] 2 1
}

func ExampleQueue_Attempt() {
	q := jobqueue.New[string]()
	q.Add("a")
	for range 2 {
		_ = q.Do(context.Background(), 1, func(_ context.Context, jobs []string) error {
			fmt.Println("attempt", q.Attempt(jobs[0]))
			return errors.New("no luck")
		})
	}
	// Output:
	// attempt 1
	// attempt 2
}

func ExampleQueue_Stats() {
	q := jobqueue.New[int]()
	q.AddAll(1, 1, 2)
	_ = q.Do(context.Background(), 1, func(context.Context, []int) error { return nil })
	s := q.Stats()
	fmt.Println(s.Added, "added,", s.Duplicates, "duplicate,", s.Done, "done")
	// Output: 2 added, 1 duplicate, 1 done
}

// A file that changes while its thumbnail is made is made again.
func ExampleWhileRunning() {
	q := jobqueue.New[string](jobqueue.WhileRunning(jobqueue.RunAgain))
	q.Add("a.jpg")
	_ = q.Do(context.Background(), 1, func(context.Context, []string) error {
		fmt.Println("accepted:", q.Add("a.jpg"))
		return nil
	})
	fmt.Println(q.Queued())
	// Output:
	// accepted: true
	// [a.jpg]
}

func ExamplePriority() {
	q := jobqueue.New[string](jobqueue.Priority(func(job string) int {
		if strings.HasPrefix(job, "urgent") {
			return 1
		}
		return 0
	}))
	q.AddAll("a", "b", "urgent")
	fmt.Println(q.Queued())
	// Output: [urgent a b]
}

// A job that fails waits longer each time.
func ExampleRetryDelay() {
	q := jobqueue.New[int](jobqueue.RetryDelay(async.Backoff(time.Millisecond, time.Second)))
	q.Add(1)
	tries := 0
	_ = q.Consume(context.Background(), 1, 1, func(context.Context, []int) error {
		if tries++; tries < 3 {
			return errors.New("no luck")
		}
		q.Close()
		return nil
	})
	fmt.Println(tries, "tries")
	// Output: 3 tries
}

func ExampleObserve() {
	q := jobqueue.New[string](jobqueue.Observe(func(e jobqueue.Event[string]) { fmt.Println(e.Kind, e.Job) }))
	q.Add("a")
	_ = q.Do(context.Background(), 1, func(context.Context, []string) error { return nil })
	// Output:
	// added a
	// taken a
	// done a
}

func ExampleMaxAttempts() {
	q := jobqueue.New[string](jobqueue.MaxAttempts(1, func(job string, err error) { fmt.Println(job, "is given up:", err) }))
	q.Add("a")
	_ = q.Do(context.Background(), 1, func(context.Context, []string) error { return errors.New("no luck") })
	// Output: a is given up: no luck
}

func ExampleCapacity() {
	q := jobqueue.New[int](jobqueue.Capacity(2))
	fmt.Println("rejected:", q.AddAll(1, 2, 3))
	// Output: rejected: [3]
}
