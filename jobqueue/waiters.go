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
	ended bool       // it is settled, and takes nothing any more
}

// A waiter is a call of Take that waits. Once it is off the list it has either
// jobs or an error.
type waiter[K comparable, T any] struct {
	holder *holder[K, T]
	most   int
	nodes  []*node[K, T] // what it was served
	err    error         // why it will be served nothing

	future  *async.Future[struct{}]
	promise *async.Promise[struct{}] // resolved, without the lock, by who takes it off the list

	prev, next *waiter[K, T]
	gone       bool // off the list
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
	w.prev, w.next, w.gone = nil, nil, true
}

// pending reports whether there is something to do for the first who waits.
func (c *core[K, T]) pending() bool {
	w := c.waiters.first
	return w != nil && (c.closed || c.ready.len() > 0 || w.holder.ended)
}

// serve gives the ready jobs to those who wait, and returns a chain of who is
// to be woken. The jobs are in the hands of the first waiter before anybody
// runs, so nobody races for them and no wake-up is lost.
func (c *core[K, T]) serve(now time.Duration) *waiter[K, T] {
	var woken waiters[K, T]
	for c.pending() {
		w := c.waiters.first
		c.waiters.remove(w)
		switch {
		case w.holder.ended: // somebody waits with the ctx of a scope that has ended
			w.err = async.ErrScopeEnded
		case c.closed:
			w.err = ErrClosed
		default:
			for range min(w.most, c.ready.len()) {
				w.nodes = append(w.nodes, c.take(w.holder, now))
			}
		}
		woken.push(w)
	}
	return woken.first
}

// wake wakes a chain of waiters. It must not be called with the lock held.
func (w *waiter[K, T]) wake() {
	for w != nil {
		next := w.next
		w.promise.Resolve(struct{}{})
		w = next
	}
}
