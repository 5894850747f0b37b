package main

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// order takes an order: it charges the card, and leaves the receipt to a worker, perhaps on another machine. The trace
// goes along in the headers of the task.
func order(ctx context.Context, q *taskqueue.Queue) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		charged := async.Start(ctx, charge, async.Name("charge"))
		if _, err := charged.Await(ctx, time.Minute); err != nil {
			return err
		}
		_, err := q.Enqueue(ctx, taskqueue.Task{Type: "receipt"})
		return err
	}, async.Name("POST /orders"))
}

func charge(ctx context.Context) error { return async.Sleep(ctx, 5*time.Millisecond) }

var errBusy = errors.New("451 the server is busy")

// receipt is what the worker does.
func receipt(ctx context.Context, c *taskqueue.Claim) error {
	sent := async.Start(ctx, func(context.Context) error {
		if c.Attempt == 1 {
			return errBusy
		}
		return nil
	}, async.Name("send mail"))
	_, err := sent.Await(ctx, time.Minute)
	return err
}
