package jobqueue

import (
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/part"
)

// This file is the waiters: calls of Take that found nothing. They are served in
// the order of the calls.

// A waiter is a call of Take that waits. When it is taken off the list it has
// jobs, or an error that says why it gets none.
type waiter[K comparable, T any] struct {
	holder *holder[K, T] // takes the jobs; may be used only while the waiter is listed
	limit  int           // at most so many jobs
	served []delivery[K, T]
	err    error

	// promise is resolved by the goroutine that takes the waiter off the list,
	// after it has given back the lock. It may come late, but not too early:
	// served and err are written before.
	promise *async.Promise[struct{}]
	future  *async.Future[struct{}]
	noted   part.Wait // of the call, for a picture of the tree

	listed     bool          // on the list of waiters
	prev, next *waiter[K, T] // there, or on the list of those to be woken
}

// A delivery is a job that was handed to a waiter. It is the waiter's only while
// node.undelivered says so. Before the waiter runs, another goroutine of its
// scope may settle the job, or the scope may end.
type delivery[K comparable, T any] struct {
	job  T
	node *node[K, T]
}

// waiters is a list of waiters, the first to be served first. A waiter is on one of
// two such lists: that of the queue, which the queue's lock guards, or that of a
// turn, which only the goroutine of the turn uses.
type waiters[K comparable, T any] struct {
	first, last *waiter[K, T]
}

// push puts w at the end.
func (l *waiters[K, T]) push(w *waiter[K, T]) {
	if w.prev = l.last; w.prev != nil {
		w.prev.next = w
	} else {
		l.first = w
	}
	l.last = w
}

// remove takes w off, from wherever it stands.
func (l *waiters[K, T]) remove(w *waiter[K, T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// wait puts w at the end of the waiters. Its jobs are h's.
func (c *core[K, T]) wait(w *waiter[K, T], h *holder[K, T]) {
	w.holder, w.listed = h, true
	h.waits++
	c.waiters.push(w)
}

// stopWaiting takes w off the waiters and returns its holder.
func (c *core[K, T]) stopWaiting(w *waiter[K, T]) *holder[K, T] {
	h := w.holder
	w.holder, w.listed = nil, false
	h.waits--
	c.waiters.remove(w)
	return h
}

// pending reports whether the first waiter can be served: there are jobs, or
// there never will be any.
func (c *core[K, T]) pending() bool {
	return c.waiters.first != nil && (c.closed || c.ready.len() > 0)
}

// serve hands the ready jobs to the waiters, each as many as it may have, and
// puts the waiters that were served on woken. A waiter has its jobs
// before the lock is given back. So no other call can take them first,
// and no waiter is woken in vain.
//
// It returns the holders of waiters that got nothing, because the queue is
// closed: they may be idle.
func (c *core[K, T]) serve(now time.Duration, woken *waiters[K, T]) (left []*holder[K, T]) {
	for c.pending() {
		w := c.waiters.first
		h := c.stopWaiting(w)
		if c.closed {
			// There may be ready jobs, but they stay where they are.
			w.err = ErrClosed
			left = append(left, h)
		} else {
			c.deliver(w, h, min(w.limit, c.ready.len()), now)
		}
		woken.push(w)
	}
	return left
}

// deliver has h take n ready jobs for w.
func (c *core[K, T]) deliver(w *waiter[K, T], h *holder[K, T], n int, now time.Duration) {
	w.served = make([]delivery[K, T], n)
	for i := range w.served {
		taken := c.take(h, now)
		taken.undelivered = w // until w has run, see receive
		w.served[i] = delivery[K, T]{taken.job, taken}
	}
}

// stopWaitingAll takes the waiters of h off the list, with err, and puts them on
// woken. It is called when the scope of h ends. Such a waiter is a goroutine
// that is no task of the scope and was given its ctx by mistake.
func (c *core[K, T]) stopWaitingAll(h *holder[K, T], err error, woken *waiters[K, T]) {
	for w := c.waiters.first; w != nil && h.waits > 0; {
		next := w.next
		if w.holder == h {
			c.stopWaiting(w)
			w.err = err
			woken.push(w)
		}
		w = next
	}
}

// receive returns the jobs that w was handed and that nobody else has settled
// since. From now on they count as delivered.
func (w *waiter[K, T]) receive() (jobs []T) {
	for _, d := range w.served {
		if d.node.undelivered == w {
			d.node.undelivered = nil
			jobs = append(jobs, d.job)
		}
	}
	return jobs
}

// wake wakes the waiters of l. It must not be called with the lock held: a
// promise that is resolved may run code of package async and of its observers.
func (l *waiters[K, T]) wake() {
	for w := l.first; w != nil; {
		next := w.next // before: once it is woken w is its Take's again
		w.promise.Resolve(struct{}{})
		w = next
	}
}
