package jobqueue

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Close closes the queue: nothing is added or taken any more, and a Take that waits
// returns [ErrClosed].
//
//	defer q.Close()
//
// # Details
//
// Jobs in progress are settled as ever; those that fail go back. A job that is queued
// or delayed stays as it is, where it can be seen ([Queue.Queued]) and removed; no
// timer runs any more. Close does not block, and closing again does nothing.
func (q *Queue[K, T]) Close() {
	var t turn[K, T]
	q.lock(&t)
	q.core.noAdds, q.core.closed = true, true
	q.unlock(&t)
}

// Drain refuses what is added from now on, waits until nothing is queued and nothing
// is in progress, and closes the queue.
//
//	err := q.Drain(ctx) // others go on taking
//
// # Details
//
// Jobs that fail meanwhile go back and are waited for, through their [RetryDelay]
// too. Jobs of [Queue.AddAfter] whose time has not come are not waited for: they are
// seen in [Queue.Queued] after. Other goroutines must go on taking.
//
// Drain returns nil when that is so. If ctx is done before, its error matches both
// ctx.Err and its Cause, and the queue goes on draining until it is closed. If it is
// closed with jobs left, Drain waits only for those in progress and returns
// [ErrClosed].
//
// With the ctx of a scope that holds jobs of the queue, or is inside one, Drain
// returns [ErrSelfWait] and does nothing. A scope that takes while something in it
// drains must settle by Ack, or in a scope inside as Do and Consume do; otherwise the
// two wait for each other.
func (q *Queue[K, T]) Drain(ctx context.Context) error {
	scope := bridge.ScopeOf(ctx)
	future, promise := async.NewPromise[struct{}](context.WithoutCancel(ctx)) // it is resolved, whatever becomes of ctx
	defer promise.Resolve(struct{}{})                                         // the scope of ctx forgets it
	d := &drainWait{promise: promise}
	var t turn[K, T]
	q.lock(&t)
	if q.holdsLocked(scope) {
		q.unlock(&t)
		return ErrSelfWait
	}
	q.core.noAdds = true
	q.drains = append(q.drains, d)
	q.unlock(&t)
	_, err := future.Wait(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !d.ended { // cut short
		q.drains = slices.DeleteFunc(q.drains, func(other *drainWait) bool { return other == d })
		return err
	}
	return d.err
}

// holdsLocked reports whether scope, or one around it, holds jobs.
func (q *Queue[K, T]) holdsLocked(scope context.Context) bool {
	for ; scope != nil; scope = bridge.Around(scope) {
		if h := q.holders.find(scope); h != nil && h.jobs.len > 0 {
			return true
		}
	}
	return false
}

// endDrainLocked closes a queue in which a Drain has nothing to wait for, and ends the
// calls of Drain. How they end is decided here: jobs that were not taken may be removed
// before the calls return.
func (q *Queue[K, T]) endDrainLocked(t *turn[K, T]) {
	q.core.closed = true
	q.serveLocked(t) // every Take that waits is told
	if q.drains == nil {
		return
	}
	for _, d := range q.drains {
		d.ended = true
		if q.core.waiting() > 0 { // it was closed with jobs that Drain would have waited for
			d.err = ErrClosed
		}
	}
	t.followUp().drained, q.drains = q.drains, nil
}
