package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the workers of one call as a whole: how they are started, and
// what becomes of items that an executor refuses to take a worker for.

// A crew is the workers of one call. E says which item is meant: an index of
// ForkJoin, an entry of a stream. How items come to workers is the affair of those:
// they set the functions below before the first worker starts.
type crew[E any] struct {
	s    *tree.Scope  // whose tasks they are
	fn   any          // the user's function, for names
	opts []TaskOption // of every worker; with any, none does two items
	// nothing: there is nothing in the values of items.
	nothing bool

	do     func(ctx context.Context, item E) error // runs an item
	doMany func(w *worker[E]) (over bool)          // does items as long as all goes well; may be nil
	tell   func(item E, v *tree.Verdict)           // is told how an item ended
	// next is told how w's item ended, if v is not nil, and gives w another; it may block.
	next  func(w *worker[E], v *tree.Verdict) (item E, ok bool)
	more  func() (item E, ok bool) // an item for a new worker; does not block
	unrun func(v *tree.Verdict)    // is told of a worker that never ran and had no item yet
	over  func()                   // is called when the last worker has left; may be nil

	live tree.AtomicInt64 // workers that have not left, and 1 while some are being started

	mu tree.Mutex // guards what follows
	// back holds items of workers that the executor refused, for those that it took.
	// It is empty when seeking is 0: somebody comes for every item in it.
	back []E
	// seeking counts the workers that will ask for another item, from their start
	// until takeBack sends them away.
	seeking int
}

// startWith has w, a worker more, start with item.
func (c *crew[E]) startWith(w *worker[E], item E) {
	c.mu.Lock()
	c.seeking++
	c.mu.Unlock()
	w.item, w.busy = item, true
	c.start(w)
}

// start starts w. It counts before it starts: else a worker that ends at once could
// be taken for the last.
func (c *crew[E]) start(w *worker[E]) {
	w.crew = c
	w.t.Self, w.t.Kind = w, tree.KindWorker
	c.live.Add(1)
	start(&w.t, c.s, nil, c.opts)
}

// adopt returns a worker that is about to run on the calling goroutine, in the place
// of one that has left something running; nil if the scope has ended.
func (c *crew[E]) adopt() *worker[E] {
	h := &worker[E]{crew: c, inherits: true}
	t := &h.t
	t.Self, t.Kind, t.Owner = h, tree.KindWorker, c.s
	// As in Task.Start, but that t neither queues nor is launched.
	if len(c.opts) > 0 || c.s.Observers != nil || c.s.On != nil {
		m := newMore(c.s, c.opts)
		m.Delivery = nil // it has its goroutine
		t.Equip(m, nil)
	}
	c.live.Add(1)
	if !c.s.Add(t) {
		c.live.Add(-1)
		return nil
	}
	return h
}

// succeed starts a worker in the place of one that ends, if there is an item for
// it. The new worker counts as seeking in the place of the old.
func (c *crew[E]) succeed() {
	item, ok := c.more()
	if !ok {
		item, ok = c.takeBack()
	}
	if ok {
		c.start(&worker[E]{item: item, busy: true})
	}
}

// takeBack returns an item for which the executor has refused another worker. If
// there is none, the asking worker is to leave. Looking and leaving are one step
// under the lock: an item that is put back later finds that nobody seeks, and gets
// a worker of its own. So no item is left behind.
func (c *crew[E]) takeBack() (item E, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.back); n > 0 {
		item, c.back = c.back[0], c.back[1:]
		return item, true
	}
	c.seeking--
	return item, false
}

// workerLeft notes that a worker has left, or that the goroutine that starts workers is
// done with that. The last one ends the call.
func (c *crew[E]) workerLeft() {
	if c.live.Add(-1) == 0 && c.over != nil {
		c.over()
	}
}

// A worker does items. Only its goroutine uses what is not its task's.
type worker[E any] struct {
	t        tree.Task
	crew     *crew[E]
	item     E
	busy     bool // with item: it has not been told yet how that ended
	err      error
	v        tree.Verdict // how the item ended; here, because it is told through a function value
	heir     *worker[E]   // goes on in its place
	inherits bool         // it is an heir
	handed   bool         // it is concluded by another goroutine

	// These are of a worker of a stream.
	w        *tree.Waiter // it parks on this while there is no item; made on first need
	searches bool         // it is one of those that search; guarded by the stream's mu
	patience patience     // whether it yields before it parks
}
