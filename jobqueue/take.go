package jobqueue

import (
	"context"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Take takes at least one job and at most most, in the order of the queue. It
// blocks until there is one, the queue is closed ([ErrClosed]), or ctx is done,
// in which case its error matches both ctx.Err and its Cause. Who waits is
// served first come, first served; a waiting task lends its slot of a Limit.
//
// The jobs are settled by the end of the scope of ctx. If that ends well they
// are removed. If it fails, panics, calls Goexit or is cancelled they go back
// to their place in the queue, before whatever was added later. [Queue.Ack] and
// [Queue.Nack] settle some early.
//
// On a ctx without a scope Take returns [ErrNoScope], on that of a scope that
// has ended [async.ErrScopeEnded]. most < 1 panics.
func (q *Queue[K, T]) Take(ctx context.Context, most int) ([]T, error) {
	if most < 1 {
		panic("jobqueue: Take: it must be allowed to take at least 1 job")
	}
	scope := bridge.ScopeOf(ctx)
	if scope == nil {
		return nil, ErrNoScope
	}
	if err := bridge.Told(ctx); err != nil {
		return nil, err
	}
	jobs, err := q.takeNow(scope, most, nil)
	for jobs == nil && err == nil {
		w := &waiter[K, T]{most: most}
		w.future, w.promise = async.NewPromise[struct{}](ctx) // not with the lock: it looks at ctx
		if jobs, err = q.takeNow(scope, most, w); jobs == nil && err == nil {
			jobs, err = q.wait(ctx, w)
		}
		w.promise.Resolve(struct{}{}) // it need not be kept until ctx ends
	}
	return jobs, err
}

// takeNow takes what is ready. If nothing is it returns nothing, and w, unless it
// is nil, waits.
func (q *Queue[K, T]) takeNow(scope context.Context, most int, w *waiter[K, T]) (jobs []T, err error) {
	var t turn[K, T]
	q.lock(&t)
	h := q.holderLocked(scope)
	switch n := min(most, q.core.ready.len()); {
	case h == nil:
		err = async.ErrScopeEnded
	case q.core.closed:
		err = ErrClosed
	case n > 0 && q.observer != nil:
		jobs = q.takeTold(h, n, &t)
		return jobs, nil
	case n > 0:
		jobs = make([]T, n)
		for i := range jobs {
			jobs[i] = q.core.take(h, t.time()).job
		}
	case w != nil:
		w.holder = h
		q.core.wait(w)
	}
	q.unlock(&t)
	return jobs, err
}

// takeTold takes n jobs and tells the observer. If that panics Take does not
// return them, so they are nobody's.
func (q *Queue[K, T]) takeTold(h *holder[K, T], n int, t *turn[K, T]) []T {
	w := new(waiter[K, T])
	for range n {
		n := q.core.take(h, t.time())
		n.unheard = w
		w.served = append(w.served, portion[K, T]{n.job, n})
		q.tellTaken(t, n)
	}
	q.unlock(t)
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.heard()
}

// heard returns what w was served and is still its own.
func (w *waiter[K, T]) heard() (jobs []T) {
	for _, x := range w.served {
		if x.n.unheard == w {
			x.n.unheard = nil
			jobs = append(jobs, x.job)
		}
	}
	return jobs
}

// wait waits until w is served, or ctx is done. Both may happen at once: the
// lock orders the two, and if ctx was seen done although jobs are there they
// are given on, so that nobody has them who does not know of it. It returns
// nothing if others have settled all that w was served.
func (q *Queue[K, T]) wait(ctx context.Context, w *waiter[K, T]) (jobs []T, err error) {
	_, err = w.future.Wait(ctx)
	var t turn[K, T]
	q.lock(&t)
	switch {
	case !w.gone:
		q.core.dismiss(w)
	case w.err != nil:
		err = w.err
	case w.holder.ended: // which has put back what it was served
		err = async.ErrScopeEnded
	case err == nil:
		jobs = w.heard()
	default:
		for _, x := range w.served {
			if x.n.unheard == w {
				q.giveOnLocked(x.n, err, &t)
			}
		}
	}
	q.unlock(&t)
	return jobs, err
}

// holderLocked returns the holder of scope, nil if that has ended.
func (q *Queue[K, T]) holderLocked(scope context.Context) *holder[K, T] {
	if h := q.last; h != nil && h.scope == scope && !h.ended {
		return h
	}
	if h := q.holders[scope]; h != nil {
		q.last = h
		return h
	}
	h := &holder[K, T]{q: q, scope: scope}
	if bridge.AtEnd(scope, h) == nil {
		return nil
	}
	q.holders[scope], q.last = h, h
	return h
}
