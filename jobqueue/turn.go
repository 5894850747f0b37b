package jobqueue

import (
	"time"

	"github.com/ambit-go/ambit/async"
)

// A turn is one stretch with the lock of a queue held, and what is to be done
// when the lock is given back: waking waiters, and calling users' functions.
//
// Every exported method of Queue is one turn, or two where a function of the user is
// asked in between. A turn is a variable of that method and is used by its goroutine
// only.
type turn[K comparable, T any] struct {
	now     time.Duration
	hasTime bool // now is the time; the clock has been read
	woken   waiters[K, T]
	follow  *followUp[T] // nil in most turns
}

// A followUp is what is to be done after a turn, beside waking waiters. Few turns have one.
type followUp[T any] struct {
	events  []Event[T]   // for the observer
	dead    []deadJob[T] // for the function of MaxAttempts
	drained []*drainWait // calls of Drain that have ended
}

// followUp returns what is to be done after the turn, to be added to.
func (t *turn[K, T]) followUp() *followUp[T] {
	if t.follow == nil {
		t.follow = new(followUp[T])
	}
	return t.follow
}

// A deadJob is a job that is given up, and why.
type deadJob[T any] struct {
	job T
	err error
}

// A drainWait is a call of Drain that waits.
type drainWait struct {
	promise *async.Promise[struct{}]

	// These are guarded by the mu of the queue.
	ended bool  // there is nothing to wait for
	err   error // ended: what Drain returns
}

// time returns when the turn takes place. It reads the clock if nobody has asked
// before: measured, one reading takes a tenth of the time of adding, taking and
// settling a job.
func (t *turn[K, T]) time() time.Duration {
	if !t.hasTime {
		t.now, t.hasTime = clock(), true
	}
	return t.now
}

// lock takes the lock and begins a turn.
func (q *Queue[K, T]) lock(t *turn[K, T]) {
	q.mu.Lock()
	q.begin(t)
}

// begin begins a turn, with the lock held. The timer may be late, so jobs that
// are due are made ready, and handed to waiters, before the turn does anything
// else.
func (q *Queue[K, T]) begin(t *turn[K, T]) {
	if first := q.core.delayed.min(); first != nil && !q.core.closed && first.at <= t.time() {
		q.core.makeDueReady(t.now)
		q.serveLocked(t)
	}
}

// unlock serves the waiters, ends the turn and gives the lock back. Then it calls
// users' functions and wakes the waiters that were served. If one of the functions
// panics the rest is done all the same, and then the panic goes on.
func (q *Queue[K, T]) unlock(t *turn[K, T]) {
	// Whatever the turn was about, it may have made jobs ready, or may have ended
	// what a Drain waits for. Both are looked at here, in one place, so that no
	// call can forget it and leave a waiter asleep beside a job.
	q.serveLocked(t)
	if q.core.noAdds && q.core.drained() {
		q.endDrainLocked(t)
	}
	// The timer is set last: it depends on what is delayed when the turn is over.
	if q.armed || q.core.delayed.len() > 0 {
		q.armLocked(t)
	}
	q.mu.Unlock()
	// The jobs that the waiters were handed were written before the lock was given back, and
	// their promises are resolved after that. So a waiter that wakes sees it.
	if t.follow != nil {
		q.callUsers(t)
	} else if t.woken.first != nil {
		t.woken.wake()
	}
}

// callUsers calls the observer, then the function of MaxAttempts, and then wakes:
// a Take returns after the observer was told what is taken.
func (q *Queue[K, T]) callUsers(t *turn[K, T]) {
	defer t.wake()
	defer callEach(t.follow.dead, func(d deadJob[T]) { q.dead(d.job, d.err) })
	callEach(t.follow.events, q.observer)
}

// callEach calls f with each of elems, in order. If a call panics, or calls Goexit, the
// others are made before that goes on.
func callEach[E any](elems []E, f func(E)) {
	called := 0
	defer func() {
		if called < len(elems) {
			callEach(elems[called+1:], f)
		}
	}()
	for ; called < len(elems); called++ {
		f(elems[called])
	}
}

// wake wakes the calls of Take and Drain that have ended. No lock is held.
func (t *turn[K, T]) wake() {
	t.woken.wake()
	for _, d := range t.follow.drained {
		d.promise.Resolve(struct{}{})
	}
}

// serveLocked hands what is ready to the waiters.
func (q *Queue[K, T]) serveLocked(t *turn[K, T]) {
	if !q.core.pending() {
		return
	}
	// A turn may serve twice, at its beginning and at its end. The observer is told
	// only of those that are served now: they come behind before on the list.
	before := t.woken.last
	for _, h := range q.core.serve(t.time(), &t.woken) {
		q.dropIdleLocked(h)
	}
	if q.observer == nil {
		return
	}
	served := t.woken.first
	if before != nil {
		served = before.next
	}
	for w := served; w != nil; w = w.next {
		for _, d := range w.served {
			q.tellTaken(t, d.node)
		}
	}
}

// tellTaken has the observer told that n was taken.
func (q *Queue[K, T]) tellTaken(t *turn[K, T], n *node[K, T]) {
	if q.observer != nil {
		t.tell(Event[T]{Kind: Taken, Job: n.job, Attempt: n.runs, Queued: n.waited})
	}
}

// tell has the observer told of e at the end of the turn. There must be one.
func (t *turn[K, T]) tell(e Event[T]) {
	m := t.followUp()
	m.events = append(m.events, e)
}
