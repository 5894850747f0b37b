package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A worker does orders, one after another.
type worker struct {
	queue   *jobqueue.Queue[order, order]
	journal *journal

	panics   int64        // each so many orders it panics; 0: never
	tried    atomic.Int64 // how many orders were tried
	restarts atomic.Int64
}

// run does orders until the queue is drained, or ctx is done. When the worker has
// panicked it is started again: the order that it was at goes back to the head of the
// queue before that, because the scope that has taken it fails.
//
// The task inside is supervised, not the service: a service that fails while it is
// drained is not started again, and this one is to finish.
func (w *worker) run(ctx context.Context) error {
	work := func(ctx context.Context) error { return w.queue.Consume(ctx, 1, 1, w.do) }
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, work, async.Name("worker"),
			async.Restart(async.RestartPolicy{Interval: async.Every(20 * time.Millisecond), Within: -1})) // however often it panics
		return nil
	}, async.Observe(async.ObserverFunc(w.observe)))
	if left, _ := w.queue.Len(); left > 0 {
		return fmt.Errorf("%d accepted orders were not done", left)
	}
	return err
}

// drain has run come to its end when all orders are done. If it cannot do them any
// more it has closed the queue, and says itself how many are left.
func (w *worker) drain(ctx context.Context) error {
	err := w.queue.Drain(ctx)
	if errors.Is(err, jobqueue.ErrClosed) {
		return nil
	}
	return err
}

// observe tells of the runs that have ended in a panic. Nobody else does, as long
// as the worker is started again.
func (w *worker) observe(e async.Event) {
	var p *async.PanicError
	if e.Kind == async.EventEnd && e.Task == "worker" && errors.As(e.Err, &p) {
		w.restarts.Add(1)
		say("the worker has panicked, and is started again: %v", p.Value)
	}
}

// do does one order. It is done when the journal has accepted it.
func (w *worker) do(ctx context.Context, orders []order) error {
	if n := w.tried.Add(1); w.panics > 0 && n%w.panics == 0 {
		panic(fmt.Sprintf("order %d was too much", orders[0].number))
	}
	err := w.journal.add(ctx, orders[0])
	if errors.Is(err, async.ErrScopeEnded) { // there is no journal any more: nothing can be done
		w.queue.Close()
	}
	return err
}
