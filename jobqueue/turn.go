package jobqueue

import (
	"time"

	"github.com/ambit-go/ambit/async"
)

// A turn is one stretch with the lock of a queue, and what is left to do when
// it is given back.
type turn[K comparable, T any] struct {
	now    time.Duration
	read   bool // the clock was: now is the time
	woken  waiters[K, T]
	events []Event[T]
	buried []burial[T]
}

// A burial is a call of the function of MaxAttempts.
type burial[T any] struct {
	job T
	err error
}

// time returns when the turn took place. The clock is read only if somebody
// asks, and once: measured, a reading is a tenth of a job's way through a queue.
func (t *turn[K, T]) time() time.Duration {
	if !t.read {
		t.now, t.read = clock(), true
	}
	return t.now
}

// lock takes the lock and begins a turn.
func (q *Queue[K, T]) lock(t *turn[K, T]) {
	q.mu.Lock()
	q.begin(t)
}

// begin begins a turn, with the lock held. Timers are late, and jobs that are due
// by now come before what this turn is about.
func (q *Queue[K, T]) begin(t *turn[K, T]) {
	if first := q.core.delayed.min(); first != nil && !q.core.closed && first.at <= t.time() {
		q.core.ripen(t.now)
		if q.core.pending() {
			q.serveLocked(t)
		}
	}
}

// unlock serves who waits, ends the turn, and does what may only be done without
// the lock: waking, and calling users' functions. What those do wrong comes
// after everything else is right.
func (q *Queue[K, T]) unlock(t *turn[K, T]) {
	if q.core.pending() {
		q.serveLocked(t)
	}
	var drained []*async.Promise[struct{}]
	if q.core.refuse && q.core.idle() {
		drained = q.drainedLocked(t)
	}
	if q.armed || q.core.delayed.len() > 0 {
		q.armLocked(t)
	}
	q.mu.Unlock()

	if len(t.events)+len(t.buried) > 0 {
		defer q.wake(&t.woken, drained) // after the observer was told what they were given
		defer all(t.buried, func(b burial[T]) { q.dead(b.job, b.err) })
		all(t.events, q.observer)
	} else if t.woken.first != nil || drained != nil {
		q.wake(&t.woken, drained)
	}
}

func (q *Queue[K, T]) wake(woken *waiters[K, T], drained []*async.Promise[struct{}]) {
	woken.wake()
	for _, p := range drained {
		p.Resolve(struct{}{})
	}
}

// all calls f with each of elems. If one call panics the others are made all the
// same, before the panic goes on.
func all[E any](elems []E, f func(E)) {
	done := 0
	defer func() {
		if done < len(elems) {
			all(elems[done+1:], f)
		}
	}()
	for ; done < len(elems); done++ {
		f(elems[done])
	}
}

// serveLocked gives what is ready to who waits for it. Something must be pending.
func (q *Queue[K, T]) serveLocked(t *turn[K, T]) {
	before := t.woken.last
	q.core.serve(t.time(), &t.woken)
	first := t.woken.first
	if before != nil {
		first = before.next
	}
	for w := first; w != nil; w = w.next {
		for _, x := range w.served {
			q.tellTaken(t, x.n)
		}
	}
}

// tellTaken has the observer told of a job that has just been taken.
func (q *Queue[K, T]) tellTaken(t *turn[K, T], n *node[K, T]) {
	if q.observer != nil {
		t.tell(Event[T]{Kind: Taken, Job: n.job, Attempt: n.runs, Queued: n.waited})
	}
}

// tell has the observer, which there must be, told of e when the turn is over.
func (t *turn[K, T]) tell(e Event[T]) { t.events = append(t.events, e) }
