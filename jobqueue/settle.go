package jobqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is how what was taken is settled: early by Ack and Nack, the rest by
// the end of the scope that took it. Each job is settled once: whoever comes
// later finds it in nobody's hands, or in another's.

// Ack settles jobs that were taken as done: they are removed now, whatever
// becomes of the scope. It looks for who holds them from the scope of ctx
// outwards, so tasks that a consumer has started may settle what it took. What
// none of these holds (any more) it leaves alone.
func (q *Queue[K, T]) Ack(ctx context.Context, jobs ...T) {
	var few [4]usable[K]
	keys := q.keys(few[:0], jobs)
	scope := bridge.ScopeOf(ctx)
	var t turn[K, T]
	q.lock(&t)
	for i := range keys {
		if n := q.heldLocked(scope, &keys[i]); n != nil {
			q.doneLocked(n, &t)
		}
	}
	q.unlock(&t)
}

// Nack settles jobs that were taken as failed with err: they go back to their
// place now, or as [RetryDelay] and [MaxAttempts] say. With a nil err they go
// back at once and it is no failure: somebody else is to have them. Whose jobs
// it may settle is as for [Queue.Ack].
func (q *Queue[K, T]) Nack(ctx context.Context, err error, jobs ...T) {
	keys := q.keys(nil, jobs)
	scope := bridge.ScopeOf(ctx)
	var failed []*node[K, T]
	var t turn[K, T]
	q.lock(&t)
	for i := range keys {
		switch n := q.heldLocked(scope, &keys[i]); {
		case n == nil:
		case err == nil:
			q.stopLocked(n, nil, &t)
		default:
			failed = append(failed, q.seizeLocked(n))
		}
	}
	q.failAll(failed, err, &t)
}

// heldLocked returns the job with the given key if scope or one around it holds
// it.
func (q *Queue[K, T]) heldLocked(scope context.Context, key *usable[K]) *node[K, T] {
	if !key.ok {
		return nil
	}
	n := q.core.nodes[key.key]
	if n == nil || n.holder == nil {
		return nil
	}
	for ; scope != nil; scope = bridge.Around(scope) {
		if scope == n.holder.scope {
			return n
		}
	}
	return nil
}

// ScopeEnds settles what h still holds. It must run no users' code, so where some
// has to be run it leaves that to an exit hook.
func (h *holder[K, T]) ScopeEnds(how bridge.Ending, outcome error) {
	q := h.q
	if q.observer == nil && (how != bridge.Failed || q.retry == nil && q.dead == nil) {
		q.settle(h, how, outcome)
		return
	}
	async.OnExit(h.scope, func(context.Context, error) error { q.settle(h, how, outcome); return nil })
}

// settle settles what h still holds, and ends h.
func (q *Queue[K, T]) settle(h *holder[K, T], how bridge.Ending, outcome error) {
	var t turn[K, T]
	q.lock(&t)
	delete(q.holders, h.scope)
	if q.last == h {
		q.last = nil
	}
	h.end(&q.core, &t.woken)
	var failed []*node[K, T]
	for n := h.jobs.first; n != nil; n = h.jobs.first {
		switch {
		case n.unheard != nil:
			q.giveOnLocked(n, async.ErrScopeEnded, &t)
		case how == bridge.Failed:
			failed = append(failed, q.seizeLocked(n))
		case how == bridge.Stopped:
			q.stopLocked(n, outcome, &t)
		default:
			q.doneLocked(n, &t)
		}
	}
	q.failAll(failed, outcome, &t)
}

func (q *Queue[K, T]) doneLocked(n *node[K, T], t *turn[K, T]) {
	now := t.time()
	if q.observer != nil {
		t.tell(n.event(Done, now, nil))
	}
	q.core.done(n, now)
}

func (q *Queue[K, T]) stopLocked(n *node[K, T], why error, t *turn[K, T]) {
	now := t.time()
	if q.observer != nil {
		t.tell(n.event(Stopped, now, why))
	}
	q.core.release(n, now)
}

// giveOnLocked puts back n, of which nobody has heard: that was no run.
func (q *Queue[K, T]) giveOnLocked(n *node[K, T], why error, t *turn[K, T]) {
	n.runs--
	q.stopLocked(n, why, t)
}

// seizeLocked takes n from its holder, so that nobody else settles it: it has
// failed, and is in the hands of the queue itself until failAll.
func (q *Queue[K, T]) seizeLocked(n *node[K, T]) *node[K, T] {
	n.holder.jobs.remove(n)
	n.holder = &q.settling
	q.settling.jobs.push(n)
	return n
}

// failAll settles nodes that were seized as failed with err, and ends the turn t.
// A RetryDelay is asked between two turns, as it may not be with the lock; if it
// panics the rest of the jobs go back at once.
func (q *Queue[K, T]) failAll(nodes []*node[K, T], err error, t *turn[K, T]) {
	delays := make([]time.Duration, len(nodes))
	if q.retry == nil || len(nodes) == 0 {
		q.failLocked(nodes, delays, err, t)
		q.unlock(t)
		return
	}
	failed := make([]int, len(nodes)) // times, 0 for those that will be dead
	for i, n := range nodes {
		if !q.core.buries(n) {
			failed[i] = n.failed + 1
		}
	}
	q.unlock(t)
	defer func() {
		var t turn[K, T]
		q.lock(&t)
		q.failLocked(nodes, delays, err, &t)
		q.unlock(&t)
	}()
	for i, times := range failed {
		if times > 0 {
			delays[i] = q.retry(times)
		}
	}
}

func (q *Queue[K, T]) failLocked(nodes []*node[K, T], delays []time.Duration, err error, t *turn[K, T]) {
	for i, n := range nodes {
		now := t.time()
		e := n.event(Failed, now, err)
		if q.core.fail(n, after(now, delays[i]), now) {
			e.Kind = Dead
			if q.dead != nil {
				t.buried = append(t.buried, burial[T]{e.Job, err})
			}
		}
		if q.observer != nil {
			t.tell(e)
		}
	}
}

// event returns the event of a run of n that ends now.
func (n *node[K, T]) event(kind EventKind, now time.Duration, err error) Event[T] {
	return Event[T]{Kind: kind, Job: n.job, Attempt: n.runs, Ran: now - n.since, Err: err}
}

// usable is a key, and whether it can be found in a map.
type usable[K comparable] struct {
	key K
	ok  bool
}

// keys appends the keys of jobs to keys.
func (q *Queue[K, T]) keys(keys []usable[K], jobs []T) []usable[K] {
	for _, job := range jobs {
		key := q.key(job)
		keys = append(keys, usable[K]{key, q.usable(key)})
	}
	return keys
}
