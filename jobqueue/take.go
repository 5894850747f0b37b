package jobqueue

import (
	"context"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Take takes at least one job and at most max, in the order of the queue.
//
//	files, err := q.Take(ctx, 10) // settled by the end of the scope of ctx
//
// # Details
//
// Take blocks until there is a job, the queue is closed ([ErrClosed]), or ctx is
// done, in which case its error matches both ctx.Err and its Cause. Calls that wait
// are served in the order in which they came. A waiting task lends its slot of a
// Limit.
//
// The jobs are settled by the end of the scope of ctx. If the scope ends well they
// are removed. If it fails, panics, calls Goexit or is cancelled they go back to
// their place in the queue, before whatever was added later. [Queue.Ack] and
// [Queue.Nack] settle some early.
//
// On a ctx without a scope Take returns [ErrNoScope], on that of a scope that has
// ended [async.ErrScopeEnded]. max < 1 panics.
func (q *Queue[K, T]) Take(ctx context.Context, max int) ([]T, error) {
	if max < 1 {
		panic("jobqueue: Take: it must be allowed to take at least 1 job")
	}
	scope := bridge.ScopeOf(ctx)
	if scope == nil {
		return nil, ErrNoScope
	}
	if err := bridge.StopError(ctx); err != nil {
		return nil, err
	}
	// Most often there is a job: then neither a waiter nor a promise is made.
	jobs, err := q.takeNow(scope, max, nil)
	for jobs == nil && err == nil {
		jobs, err = q.takeLater(ctx, scope, max)
	}
	return jobs, err
}

// takeLater takes what is ready, and waits if nothing is. It returns nothing if
// it was handed jobs and others of its scope have settled them before it ran.
func (q *Queue[K, T]) takeLater(ctx, scope context.Context, limit int) ([]T, error) {
	w := &waiter[K, T]{limit: limit}
	w.future, w.promise = async.NewPromise[struct{}](context.WithoutCancel(ctx)) // it is resolved, whatever becomes of ctx
	defer w.promise.Resolve(struct{}{})                                          // the scope of ctx forgets it
	if jobs, err := q.takeNow(scope, limit, w); jobs != nil || err != nil {
		return jobs, err
	}
	return q.wait(ctx, w)
}

// takeNow takes what is ready. If nothing is it returns nothing, and puts w on
// the list of waiters, unless that is nil. Looking and waiting are one turn, so
// no job can become ready between the two.
func (q *Queue[K, T]) takeNow(scope context.Context, limit int, w *waiter[K, T]) ([]T, error) {
	var t turn[K, T]
	q.lock(&t)
	n := min(limit, q.core.ready.len())
	if q.core.closed { // also if jobs are left
		q.unlock(&t)
		return nil, ErrClosed
	}
	if n == 0 && w == nil {
		q.unlock(&t)
		return nil, nil
	}
	// Only now is a holder made: a call that takes nothing and does not wait must
	// leave nothing in its scope.
	h := q.holderLocked(scope)
	switch {
	case h == nil:
		q.unlock(&t)
		return nil, async.ErrScopeEnded
	case n == 0:
		q.core.wait(w, h)
		q.unlock(&t)
		return nil, nil
	}
	return q.takeReady(h, n, &t), nil
}

// takeReady has h take n ready jobs, and ends the turn t.
func (q *Queue[K, T]) takeReady(h *holder[K, T], n int, t *turn[K, T]) []T {
	if q.observer != nil {
		return q.takeObserved(h, n, t)
	}
	jobs := make([]T, n)
	for i := range jobs {
		jobs[i] = q.core.take(h, t.time()).job
	}
	q.unlock(t)
	return jobs
}

// takeObserved is takeReady for a queue with an observer, which is told at the
// end of the turn. If it panics Take does not return the jobs: they are
// undelivered.
func (q *Queue[K, T]) takeObserved(h *holder[K, T], n int, t *turn[K, T]) []T {
	// The waiter stands for this call, which does not wait: until receive, the jobs
	// are those of a Take that may never return.
	w := new(waiter[K, T])
	q.core.deliver(w, h, n, t.time())
	for _, d := range w.served {
		q.tellTaken(t, d.node)
	}
	q.unlock(t) // calls the observer
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.receive()
}

// wait waits until w is off the list of waiters, or ctx is done. Both may happen
// at the same time. The lock orders the two: either w is found on the list, and
// nobody hands it anything any more, or it was served before. If it was, and ctx
// was seen done, Take is going to return an error, so the jobs are put back.
func (q *Queue[K, T]) wait(ctx context.Context, w *waiter[K, T]) (jobs []T, err error) {
	w.noted.Begin(ctx, (*shown[K, T])(q), "a job")
	_, err = w.future.Wait(ctx) // an error says that ctx is done, or that its scope has ended
	w.noted.End()
	var t turn[K, T]
	q.lock(&t)
	switch {
	case w.listed:
		q.dropIdleLocked(q.core.stopWaiting(w))
	case w.err != nil:
		err = w.err
	case err == nil:
		jobs = w.receive()
	default:
		q.returnServedLocked(w, err, &t)
	}
	q.unlock(&t)
	return jobs, err
}

// returnServedLocked puts back what w was handed and is still its own.
func (q *Queue[K, T]) returnServedLocked(w *waiter[K, T], why error, t *turn[K, T]) {
	for _, d := range w.served {
		if d.node.undelivered == w {
			h := d.node.holder
			q.undoTakeLocked(d.node, why, t)
			q.dropIdleLocked(h)
		}
	}
}
