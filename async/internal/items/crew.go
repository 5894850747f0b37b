package items

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the workers of one call as a whole: how they are started, and
// what becomes of items that an executor refuses to take a worker for.

// A Crew is the workers of one call. E says which item is meant: an index of
// ForkJoin, an entry of a stream. How items come to workers is the affair of those:
// they set the functions below before the first worker starts.
type Crew[E any] struct {
	Scope   *tree.Scope   // whose tasks they are
	Func    any           // the user's function, for names
	Timeout time.Duration // of every worker, 0: none; with one, none does two items
	// Nothing: there is nothing in the values of items.
	Nothing bool

	Do     func(ctx context.Context, item E) error // runs an item
	DoMany func(w *Worker[E]) (over bool)          // does items as long as all goes well; may be nil
	Tell   func(item E, v *tree.Verdict)           // is told how an item ended
	// Next is told how w's item ended, if v is not nil, and gives w another; it may block.
	Next  func(w *Worker[E], v *tree.Verdict) (item E, ok bool)
	More  func() (item E, ok bool) // an item for a new worker; does not block
	unrun func(v *tree.Verdict)    // is told of a worker that never ran and had no item yet
	Over  func()                   // is called when the last worker has left; may be nil

	Live tree.AtomicInt64 // workers that have not left, and 1 while some are being started

	mu tree.Mutex // guards what follows
	// back holds items of workers that the executor refused, for those that it took.
	// It is empty when seeking is 0: somebody comes for every item in it.
	back []E
	// seeking counts the workers that will ask for another item, from their start
	// until TakeBack sends them away.
	seeking int
}

// StartWith has w, a worker more, start with item.
func (c *Crew[E]) StartWith(w *Worker[E], item E) {
	c.mu.Lock()
	c.seeking++
	c.mu.Unlock()
	w.Item, w.busy = item, true
	c.start(w)
}

// start starts w. It counts before it starts: else a worker that ends at once could
// be taken for the last.
func (c *Crew[E]) start(w *Worker[E]) {
	w.crew = c
	w.Task.Self, w.Task.Kind = w, tree.KindWorker
	c.Live.Add(1)
	m := tree.MoreIn(c.Scope, &w.Task, c.Timeout != 0)
	if m != nil {
		m.Timeout = c.Timeout
	}
	tree.StartWith(&w.Task, c.Scope, nil, m)
}

// adopt returns a worker that is about to run on the calling goroutine, in the place
// of one that has left something running; nil if the scope has ended.
func (c *Crew[E]) adopt() *Worker[E] {
	h := &Worker[E]{crew: c, inherits: true}
	t := &h.Task
	t.Self, t.Kind, t.Owner = h, tree.KindWorker, c.Scope
	// As in Task.Start, but that t neither queues nor is launched.
	if c.Timeout != 0 || c.Scope.Observers != nil || c.Scope.On != nil {
		m := new(tree.More) // without a Delivery: it has its goroutine
		m.Timeout, m.Priority, m.On = c.Timeout, c.Scope.Priority, c.Scope.On
		t.Equip(m, nil)
	}
	c.Live.Add(1)
	if !c.Scope.Add(t) {
		c.Live.Add(-1)
		return nil
	}
	return h
}

// succeed starts a worker in the place of one that ends, if there is an item for
// it. The new worker counts as seeking in the place of the old.
func (c *Crew[E]) succeed() {
	item, ok := c.More()
	if !ok {
		item, ok = c.TakeBack()
	}
	if ok {
		c.start(&Worker[E]{Item: item, busy: true})
	}
}

// TakeBack returns an item for which the executor has refused another worker. If
// there is none, the asking worker is to leave. Looking and leaving are one step
// under the lock: an item that is put back later finds that nobody seeks, and gets
// a worker of its own. So no item is left behind.
func (c *Crew[E]) TakeBack() (item E, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.back); n > 0 {
		item, c.back = c.back[0], c.back[1:]
		return item, true
	}
	c.seeking--
	return item, false
}

// WorkerLeft notes that a worker has left, or that the goroutine that starts workers is
// done with that. The last one ends the call.
func (c *Crew[E]) WorkerLeft() {
	if c.Live.Add(-1) == 0 && c.Over != nil {
		c.Over()
	}
}

// A Worker does items. Only its goroutine uses what is not its task's.
type Worker[E any] struct {
	Task     tree.Task
	crew     *Crew[E]
	Item     E
	busy     bool // with item: it has not been told yet how that ended
	Err      error
	v        tree.Verdict // how the item ended; here, because it is told through a function value
	heir     *Worker[E]   // goes on in its place
	inherits bool         // it is an heir
	handed   bool         // it is concluded by another goroutine

	// These are of a worker of a stream.
	w        *tree.Waiter // it parks on this while there is no item; made on first need
	searches bool         // it is one of those that search; guarded by the stream's mu
	patience patience     // whether it yields before it parks
}
