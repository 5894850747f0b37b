package jobqueue

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Close closes the queue: nothing is added or taken any more, and who waits to
// take is told [ErrClosed]. Jobs in progress are settled as ever; those that
// fail go back. What is queued or delayed stays as it is, where it can be seen
// ([Queue.Queued]) and removed; no timer runs any more. Close does not block,
// and closing again does nothing.
func (q *Queue[K, T]) Close() {
	var t turn[K, T]
	q.lock(&t)
	q.core.refuse, q.core.closed = true, true
	q.unlock(&t)
}

// Drain refuses what is added from now on, waits until nothing is queued and
// nothing in progress, and closes the queue. Jobs that fail meanwhile go back
// and are waited for; delayed ones, those that wait for a retry included, are
// not, and are seen in [Queue.Queued] after. Somebody must go on taking.
//
// Drain returns nil when that is so. If ctx is done before, its error matches
// both ctx.Err and its Cause, and the queue goes on draining, unless it is
// closed. If it is closed with jobs left, Drain waits only for those in
// progress and returns [ErrClosed]. With the ctx of a scope that holds jobs of
// the queue, or is inside one, it returns [ErrSelfWait] and does nothing; a scope
// that takes while something in it drains must settle by Ack or in a scope
// inside, as Do and Consume do, or the two wait for each other.
func (q *Queue[K, T]) Drain(ctx context.Context) error {
	scope := bridge.ScopeOf(ctx)
	future, promise := async.NewPromise[struct{}](ctx) // not with the lock: it looks at ctx
	defer promise.Resolve(struct{}{})                  // it need not be kept until ctx ends
	var t turn[K, T]
	q.lock(&t)
	if q.holdsLocked(scope) {
		q.unlock(&t)
		return ErrSelfWait
	}
	q.core.refuse = true
	q.drains = append(q.drains, promise)
	q.unlock(&t)
	if _, err := future.Wait(ctx); err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.drains = slices.DeleteFunc(q.drains, func(p *async.Promise[struct{}]) bool { return p == promise })
		return err
	}
	return q.rest()
}

// rest returns ErrClosed if a drained queue was closed too early.
func (q *Queue[K, T]) rest() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.core.ready.len() > 0 {
		return ErrClosed
	}
	return nil
}

// holdsLocked reports whether scope, or one around it, holds jobs.
func (q *Queue[K, T]) holdsLocked(scope context.Context) bool {
	for ; scope != nil; scope = bridge.Around(scope) {
		if h := q.holders[scope]; h != nil && h.jobs.len > 0 {
			return true
		}
	}
	return false
}

// drainedLocked closes a queue that drains, now that it has nothing left, and
// returns the calls of Drain that are over.
func (q *Queue[K, T]) drainedLocked(t *turn[K, T]) []*async.Promise[struct{}] {
	q.core.closed = true
	if q.core.pending() {
		q.serveLocked(t)
	}
	over := q.drains
	q.drains = nil
	return over
}
