package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// show runs one task with a handler, and shows what has become of it.
func show(h taskqueue.Handler) {
	q, _ := taskqueue.New(memstore.New())
	ctx := context.Background()
	id, _ := q.Enqueue(ctx, taskqueue.Task{Type: "t", Payload: []byte(`{"to": "ada"}`), Retention: time.Hour})
	if err := q.Work(ctx, taskqueue.Handlers{"t": h}, taskqueue.WorkUntilEmpty()); err != nil {
		fmt.Println(err)
	}
	i, _ := q.Get(ctx, id)
	wait := time.Until(i.DueAt).Round(time.Minute)
	switch {
	case i.State.Ended():
		fmt.Println(i.State, i.LastError, string(i.Result))
	default:
		fmt.Printf("%v, again in %v: %s\n", i.State, wait, i.LastError)
	}
}

func ExampleTyped() {
	type mail struct{ To string }
	show(taskqueue.Typed(func(ctx context.Context, m mail) error {
		fmt.Println("mail to", m.To, "run", taskqueue.ClaimOf(ctx).Attempt)
		return nil
	}))
	// Output:
	// mail to ada run 1
	// done
}

// A service that the handler calls knows the task, too: its ID makes the effect the same when
// the task runs again.
func ExampleClaimOf() {
	charge := func(ctx context.Context) error {
		c := taskqueue.ClaimOf(ctx)
		fmt.Println("with a key of its own:", c.ID != "", "and a token:", c.Token > 0)
		return nil
	}
	show(func(ctx context.Context, _ *taskqueue.Claim) error { return charge(ctx) })
	// Output:
	// with a key of its own: true and a token: true
	// done
}

func ExampleRetryAfter() {
	show(func(context.Context, *taskqueue.Claim) error {
		return taskqueue.RetryAfter(time.Hour, errors.New("429 Too Many Requests"))
	})
	// Output: retrying, again in 1h0m0s: 429 Too Many Requests
}

func ExampleDead() {
	show(func(context.Context, *taskqueue.Claim) error {
		return taskqueue.Dead(errors.New("there is no such address"))
	})
	// Output: dead there is no such address
}

// No attempt is spent: another worker may have what this one lacks.
func ExampleRelease() {
	show(func(context.Context, *taskqueue.Claim) error {
		return taskqueue.Release(errors.New("no printer here"))
	})
	// Output: scheduled, again in 0s: no printer here
}

// It is not a failure: what the task is about is not ready yet.
func ExampleSnooze() {
	show(func(context.Context, *taskqueue.Claim) error {
		return taskqueue.Snooze(time.Hour)
	})
	// Output: scheduled, again in 1h0m0s: taskqueue: run again after 1h0m0s
}

func ExampleClaim_SetResult() {
	show(func(_ context.Context, c *taskqueue.Claim) error {
		c.SetResult([]byte("receipt 4711"))
		return nil
	})
	// Output: done  receipt 4711
}

// Those who look see it while the task runs.
func ExampleClaim_Progress() {
	show(func(_ context.Context, c *taskqueue.Claim) error {
		for page := range 3 {
			c.Progress(fmt.Appendf(nil, "page %d of 3", page+1))
		}
		return nil
	})
	// Output: done
}

func ExampleClaim_Deadline() {
	show(func(_ context.Context, c *taskqueue.Claim) error {
		fmt.Println("it is extended before", time.Until(c.Deadline()) > 0)
		return nil
	})
	// Output:
	// it is extended before true
	// done
}

// Something is around every handler, as with HTTP.
func ExampleHandlers_Use() {
	logged := func(next taskqueue.Handler) taskqueue.Handler {
		return func(ctx context.Context, c *taskqueue.Claim) error {
			err := next(ctx, c)
			fmt.Println(c.Type, "ended with", err)
			return err
		}
	}
	h := taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error { return nil }}.Use(logged)
	show(h["t"])
	// Output:
	// t ended with <nil>
	// done
}
