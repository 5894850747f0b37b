package jobqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is how taken jobs are settled: some early by Ack and Nack, the others
// by the end of the scope that took them. Every job is settled once. A second
// call finds that no scope holds the job, or another one.
//
// Each function says what becomes of a job:
//
//	doneLocked      it is removed
//	stopLocked      it goes back to its place; that was no failure
//	undoTakeLocked  as stopLocked, and the run is not counted
//	failAll         it is tried again, after a delay or at once, or it is dead
//
// Each tells the observer, at the end of the turn.

// Ack settles jobs that were taken as done: they are removed now, and the end of the
// scope does not matter for them.
//
//	q.Ack(ctx, files[0])
//
// # Details
//
// Ack looks for the holder of a job from the scope of ctx outwards, so tasks that a
// consumer has started may settle what the consumer took. It leaves jobs alone that
// none of these scopes holds, or holds no longer.
func (q *Queue[K, T]) Ack(ctx context.Context, jobs ...T) {
	var few [4]jobKey[K]
	keys := q.keys(few[:0], jobs)
	scope := bridge.ScopeOf(ctx) // without the lock: it may ask ctx, which may be a user's
	var t turn[K, T]
	q.lock(&t)
	for i := range keys {
		if n := q.heldLocked(scope, &keys[i]); n != nil {
			h := n.holder // done forgets it
			q.doneLocked(n, &t)
			q.dropIdleLocked(h)
		}
	}
	q.unlock(&t)
}

// Nack settles jobs that were taken as failed with err: they go back to their place
// now, or as [RetryDelay] and [MaxAttempts] say.
//
//	q.Nack(ctx, err, files[0])
//
// # Details
//
// With a nil err the jobs go back at once and it counts as no failure: others are to
// have them. Which jobs Nack may settle is as for [Queue.Ack].
func (q *Queue[K, T]) Nack(ctx context.Context, err error, jobs ...T) {
	keys := q.keys(nil, jobs)
	scope := bridge.ScopeOf(ctx)
	var failed []*node[K, T] // set aside: no scope is found to hold them, so none is listed twice
	var t turn[K, T]
	q.lock(&t)
	for i := range keys {
		n := q.heldLocked(scope, &keys[i])
		if n == nil {
			continue
		}
		h := n.holder
		if err == nil {
			q.stopLocked(n, nil, &t)
		} else {
			failed = append(failed, q.setAsideLocked(n))
		}
		q.dropIdleLocked(h)
	}
	q.failAll(failed, err, &t)
}

// heldLocked returns the job with the given key if scope, or a scope around it,
// holds it.
func (q *Queue[K, T]) heldLocked(scope context.Context, key *jobKey[K]) *node[K, T] {
	if !key.ok {
		return nil
	}
	n := q.takenLocked(scope, key.key)
	if n == nil {
		return nil
	}
	// A job that has failed and waits for failAll has a holder without a scope:
	// it is settled already, and no scope is found to hold it.
	for ; scope != nil; scope = bridge.Around(scope) {
		if scope == n.holder.scope {
			return n
		}
	}
	return nil
}

// takenLocked returns the job with the given key if it is taken. Jobs are mostly
// settled in the order of taking by the scope that took them, so the first job
// of that is looked at before the table: measured, that saves a twentieth of the
// time of adding, taking and settling a job.
func (q *Queue[K, T]) takenLocked(scope context.Context, key K) *node[K, T] {
	if h := q.holders.last; h != nil && h.scope == scope {
		if n := h.jobs.first; n != nil && n.key == key {
			return n
		}
	}
	n := q.core.nodes.get(key)
	if n == nil || n.holder == nil {
		return nil
	}
	return n
}

// ScopeEnds settles what h still holds. Package async calls it on the goroutine
// that ends the scope. No users' code may run in it, so if some has to run the
// settling is left to an exit hook, which is the next one that runs. The
// hook looks at what h holds then, so it sees jobs that were taken or settled between
// the two.
func (h *holder[K, T]) ScopeEnds(how bridge.Ending, outcome error) {
	q := h.q
	if q.observer == nil && (how != bridge.Failed || q.retry == nil && q.dead == nil) {
		q.settle(h, how, outcome)
		return
	}
	async.OnExit(h.scope, func(context.Context, error) error { q.settle(h, how, outcome); return nil })
}

// settle settles what h still holds, and removes h. Nobody else removes h at the
// same time: its Registration has been used up by ScopeEnds.
func (q *Queue[K, T]) settle(h *holder[K, T], how bridge.Ending, outcome error) {
	var t turn[K, T]
	q.lock(&t)
	// First the waiters: with them gone, what is put back below cannot be handed
	// to the scope that is ending.
	q.core.stopWaitingAll(h, async.ErrScopeEnded, &t.woken)
	failed := q.settleLocked(h, how, outcome, &t)
	h.atEnd.Recall() // it has been told; now it keeps no scope
	q.holders.remove(h)
	q.failAll(failed, outcome, &t)
}

// settleLocked settles what h holds, and returns what has failed: those jobs are
// for failAll. Nothing is handed to waiters before the end of the turn, so jobs
// that go back are in their order again when the first of them is taken.
func (q *Queue[K, T]) settleLocked(h *holder[K, T], how bridge.Ending, outcome error, t *turn[K, T]) (failed []*node[K, T]) {
	// Each case takes n off the list of h, so the next one is the first again.
	for n := h.jobs.first; n != nil; n = h.jobs.first {
		switch {
		case n.undelivered != nil:
			// The Take that was handed n has not run yet. When it runs, it
			// takes the lock after us, finds the error, and returns no job.
			n.undelivered.err = async.ErrScopeEnded
			q.undoTakeLocked(n, async.ErrScopeEnded, t)
		case how == bridge.Failed:
			failed = append(failed, q.setAsideLocked(n))
		case how == bridge.Stopped:
			q.stopLocked(n, outcome, t)
		default:
			q.doneLocked(n, t)
		}
	}
	return failed
}

// doneLocked settles n as done.
func (q *Queue[K, T]) doneLocked(n *node[K, T], t *turn[K, T]) {
	now := t.time()
	if q.observer != nil {
		t.tell(n.event(Done, now, nil))
	}
	q.core.done(n, now)
}

// stopLocked settles n as told to stop, for the reason why.
func (q *Queue[K, T]) stopLocked(n *node[K, T], why error, t *turn[K, T]) {
	now := t.time()
	if q.observer != nil {
		t.tell(n.event(Stopped, now, why))
	}
	q.core.stop(n, now)
}

// undoTakeLocked puts n back, which no Take has returned: that was no run.
func (q *Queue[K, T]) undoTakeLocked(n *node[K, T], why error, t *turn[K, T]) {
	n.runs--
	q.stopLocked(n, why, t)
}

// setAsideLocked moves n from its holder to q.failing: the run of n has failed,
// and from here on only failAll settles it.
func (q *Queue[K, T]) setAsideLocked(n *node[K, T]) *node[K, T] {
	n.holder.jobs.remove(n)
	n.holder, n.undelivered = &q.failing, nil
	q.failing.jobs.push(n)
	return n
}

// failAll settles nodes that were set aside as failed with err, and ends the turn
// t. The function of RetryDelay may not be called with the lock held. It is
// called between t and a second turn, in which the jobs are settled. If it
// panics, those jobs for which it was not called yet go back without a delay.
func (q *Queue[K, T]) failAll(nodes []*node[K, T], err error, t *turn[K, T]) {
	delays := make([]time.Duration, len(nodes))
	if q.retry == nil || len(nodes) == 0 {
		q.failLocked(nodes, delays, err, t)
		q.unlock(t)
		return
	}
	// The nodes are read before the lock is given back. While the function is
	// called q.failing holds them: they count as in progress, so
	// Drain waits for them, and no other call settles them.
	failures := make([]int, len(nodes)) // how many each has now; 0 if it will be dead
	for i, n := range nodes {
		if !q.core.isLastAttempt(n) {
			failures[i] = n.failed + 1
		}
	}
	q.unlock(t)
	// Deferred, so that it is done although the function panics: else the jobs would
	// be in progress for ever.
	defer func() {
		var t turn[K, T]
		q.lock(&t)
		q.failLocked(nodes, delays, err, &t)
		q.unlock(&t)
	}()
	for i, times := range failures {
		if times > 0 {
			delays[i] = q.retry(times)
		}
	}
}

// failLocked settles nodes as failed. Each is ready again after its delay.
func (q *Queue[K, T]) failLocked(nodes []*node[K, T], delays []time.Duration, err error, t *turn[K, T]) {
	for i, n := range nodes {
		now := t.time()
		e := n.event(Failed, now, err)
		if q.core.fail(n, after(now, delays[i]), now) {
			e.Kind = Dead
			if q.dead != nil {
				m := t.followUp()
				m.dead = append(m.dead, deadJob[T]{e.Job, err})
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

// A jobKey is the key of a job. If ok is false no map can find the key again.
type jobKey[K comparable] struct {
	key K
	ok  bool
}

// keys appends the keys of jobs to keys.
func (q *Queue[K, T]) keys(keys []jobKey[K], jobs []T) []jobKey[K] {
	for _, job := range jobs {
		key := q.key(job)
		keys = append(keys, jobKey[K]{key, q.canFind(key)})
	}
	return keys
}
