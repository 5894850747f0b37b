package jobqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is who takes: holders, which are scopes, and waiters, which are
// calls of Take that found nothing.

// A holder is a scope that has taken jobs and is to settle them when it ends.
type holder[K comparable, T any] struct {
	q     *Queue[K, T]
	scope context.Context
	jobs  list[K, T] // in the order in which they were taken
	waits int        // waiters that take for it
	ended bool       // it is settled, and takes nothing any more
}

// A waiter is a call of Take that waits. Once it is off the list it has either
// jobs or an error.
type waiter[K comparable, T any] struct {
	holder *holder[K, T]
	most   int
	served []portion[K, T]
	err    error // why it will be served nothing

	future  *async.Future[struct{}]
	promise *async.Promise[struct{}] // resolved, without the lock, by who takes it off the list

	prev, next *waiter[K, T]
	gone       bool // nobody is to serve it any more
}

// A portion is a job that a waiter was handed. It is the waiter's only while the
// node says so: until the waiter wakes, somebody else of its scope may settle the
// job, or the scope may end.
type portion[K comparable, T any] struct {
	job T
	n   *node[K, T]
}

// waiters is a list of waiters, first come first served.
type waiters[K comparable, T any] struct {
	first, last *waiter[K, T]
}

func (l *waiters[K, T]) push(w *waiter[K, T]) {
	if w.prev = l.last; w.prev != nil {
		w.prev.next = w
	} else {
		l.first = w
	}
	l.last = w
}

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

// wait puts w at the end of those who wait.
func (c *core[K, T]) wait(w *waiter[K, T]) {
	w.holder.waits++
	c.waiters.push(w)
}

// dismiss takes w off those who wait.
func (c *core[K, T]) dismiss(w *waiter[K, T]) {
	w.gone = true
	w.holder.waits--
	c.waiters.remove(w)
}

// pending reports whether there is something to tell the first who waits.
func (c *core[K, T]) pending() bool {
	return c.waiters.first != nil && (c.closed || c.ready.len() > 0)
}

// serve gives the ready jobs to those who wait, and adds to woken who is to be
// woken. The jobs are in the hands of the first waiter before anybody runs, so
// nobody races for them and no wake-up is lost.
func (c *core[K, T]) serve(now time.Duration, woken *waiters[K, T]) {
	for c.pending() {
		w := c.waiters.first
		c.dismiss(w)
		if c.closed {
			w.err = ErrClosed
		}
		for w.err == nil && len(w.served) < w.most && c.ready.len() > 0 {
			n := c.take(w.holder, now)
			n.unheard = w
			w.served = append(w.served, portion[K, T]{n.job, n})
		}
		woken.push(w)
	}
}

// end ends h, which has settled what it had. Nobody waits for a scope that has
// ended but who was handed its ctx by mistake: they are told, and added to
// woken.
func (h *holder[K, T]) end(c *core[K, T], woken *waiters[K, T]) {
	h.ended = true
	for w := c.waiters.first; w != nil && h.waits > 0; {
		next := w.next
		if w.holder == h {
			c.dismiss(w)
			w.err = async.ErrScopeEnded
			woken.push(w)
		}
		w = next
	}
}

// wake wakes the waiters of l. It must not be called with the lock held.
func (l *waiters[K, T]) wake() {
	for w := l.first; w != nil; {
		next := w.next
		w.promise.Resolve(struct{}{})
		w = next
	}
}
