package items

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is how the items of a stream come to its workers. The caller puts
// what it pulls into a queue, and workers take items from there themselves. Most
// items are small: then a worker that has ended one finds the next without
// anybody waking anybody.

// A supply is the items that wait for a worker and the workers that wait for an
// item. The stream's mu guards it.
//
// As long as an item waits, a worker searches: it is awake, or about to be,
// and looks into the queue before it parks. A worker that takes an item while
// more wait calls the next worker, since it may be long with its own. So an item
// that was pulled is begun whatever the others do, and yet one worker at a time
// is woken, and none for an item that another is faster with.
type supply[A, B any] struct {
	waiting   ring[*entry[A, B]] // items, in the order in which they were pulled
	searching int                // workers on their way to the queue
	idle      []*taker[A, B]     // workers that are parked
	closed    bool               // no more items will come
}

// A taker is a worker of a stream.
type taker[A, B any] = Worker[*entry[A, B]]

// An entry is an item that is unfinished, or whose outcome was not taken yet.
type entry[A, B any] struct {
	item   A
	result Result[B]
	v      tree.Verdict // if it has failed
	ended  bool
}

// do is the work on an item.
func (m *Stream[A, B]) do(ctx context.Context, e *entry[A, B]) (err error) {
	e.result.Value, err = m.work(ctx, e.item)
	return err
}

// push has somebody come for item a. On an executor that is a worker of its
// own: to wait for an item it would keep a place that others may need.
func (m *Stream[A, B]) push(a A) (wanted bool) {
	m.mu.Lock()
	if m.failed {
		m.mu.Unlock()
		return false
	}
	e := m.newEntryLocked()
	e.item, e.result.Index = a, m.pulled
	m.pulled++
	m.open++
	if m.order == InOrder {
		m.untaken.push(e)
	}
	if m.s.On != nil {
		m.mu.Unlock()
		m.crew.StartWith(new(taker[A, B]), e)
		return true
	}
	m.supply.waiting.push(e)
	search := m.searcherLocked()
	m.mu.Unlock()
	m.wake(search)
	return true
}

func (m *Stream[A, B]) newEntryLocked() *entry[A, B] {
	if n := len(m.spare); n > 0 {
		e := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return e
	}
	return new(entry[A, B])
}

// releaseLocked is called when e is finished and taken, or dropped.
func (m *Stream[A, B]) releaseLocked(e *entry[A, B]) {
	*e = entry[A, B]{}
	m.spare = append(m.spare, e)
	m.open--
}

// searcherLocked returns a worker to be woken, or to be started, because items
// wait and nobody searches; nil if that is not so.
func (m *Stream[A, B]) searcherLocked() (w *taker[A, B]) {
	u := &m.supply
	if u.waiting.n == 0 || u.searching > 0 {
		return nil
	}
	if n := len(u.idle); n > 0 {
		w, u.idle = u.idle[n-1], u.idle[:n-1]
	} else {
		w = new(taker[A, B])
	}
	m.searchLocked(w)
	return w
}

// wake wakes w, or starts it if it is new.
func (m *Stream[A, B]) wake(w *taker[A, B]) {
	switch {
	case w == nil:
	case w.crew == nil:
		m.crew.start(w)
	default:
		w.w.Release()
	}
}

// next is told how w's item has ended and gives it another, for which it waits;
// false if no more will come.
func (m *Stream[A, B]) next(w *taker[A, B], v *tree.Verdict) (e *entry[A, B], ok bool) {
	if m.s.On != nil {
		if v != nil {
			m.tell(nil, w.Item, v)
		}
		return m.crew.TakeBack()
	}
	if v != nil && v.Err != nil {
		m.tell(w, w.Item, v)
		v = nil
	}
	m.refuse()
	m.mu.Lock()
	if v != nil {
		m.endLocked(w.Item, v)
	}
	for again := false; ; again = true {
		e := m.takeLocked(w)
		closed := m.supply.closed
		if e == nil && !closed {
			m.searchLocked(w) // until it is parked
		}
		search, caller := m.searcherLocked(), m.callLocked()
		m.mu.Unlock()
		m.wake(search)
		if caller != nil {
			caller.Release()
		}
		switch {
		case e != nil:
			return e, true
		case closed:
			return nil, false
		case !again && m.s.Limit == nil && w.patience.willing():
			w.patience.yield()
			m.mu.Lock()
			w.patience.helped(m.supply.waiting.n > 0)
		default:
			m.parkIdle(w)
			m.mu.Lock()
		}
	}
}

// searchLocked notes that w searches, takeLocked that it has: it takes the first
// item that waits, if there is one.
func (m *Stream[A, B]) searchLocked(w *taker[A, B]) {
	if !w.searches {
		w.searches = true
		m.supply.searching++
	}
}

func (m *Stream[A, B]) takeLocked(w *taker[A, B]) *entry[A, B] {
	m.foundLocked(w)
	if m.supply.waiting.n == 0 {
		return nil
	}
	return m.supply.waiting.pop()
}

func (m *Stream[A, B]) foundLocked(w *taker[A, B]) {
	if w.searches {
		w.searches = false
		m.supply.searching--
	}
}

// parkIdle parks w until it is called, if no item waits. Its task lends its slot
// meanwhile.
func (m *Stream[A, B]) parkIdle(w *taker[A, B]) {
	if w.w == nil {
		w.w = tree.NewWaiter()
	}
	m.mu.Lock()
	if m.supply.waiting.n > 0 || m.supply.closed {
		m.mu.Unlock()
		return
	}
	w.Task.LendSlot(w.w)
	m.foundLocked(w)
	m.supply.idle = append(m.supply.idle, w)
	m.mu.Unlock()
	w.w.Park()
}

// more has no items for new workers: they look for them.
func (m *Stream[A, B]) more() (e *entry[A, B], ok bool) { return nil, false }

// refuse ends the items that nobody has come for if the call is cancelled.
func (m *Stream[A, B]) refuse() {
	if stop := m.s.Why.Load(); stop != nil {
		m.endWaiting(&tree.Verdict{Err: stop.AsError(), Echo: true, Cause: stop.Cause})
	}
}

// unrun is told of a searcher that never ran, which is cancelled.
func (m *Stream[A, B]) unrun(v *tree.Verdict) {
	m.mu.Lock()
	m.supply.searching--
	m.mu.Unlock()
	m.endWaiting(v)
}

func (m *Stream[A, B]) endWaiting(v *tree.Verdict) {
	m.mu.Lock()
	unbegun := m.supply.waiting
	m.supply.waiting = ring[*entry[A, B]]{}
	m.mu.Unlock()
	for unbegun.n > 0 {
		m.tell(nil, unbegun.pop(), v)
	}
}

// tell notes how an item ended, and that w, if it is not nil, looks for the next.
// A failure that stops the rest cancels them before the item makes room: the
// caller that finds room finds the cancellation too, and pulls no more. The caller
// is told last, when what follows from it can be seen.
func (m *Stream[A, B]) tell(w *taker[A, B], e *entry[A, B], v *tree.Verdict) {
	dropped := v.Err != nil && m.fail(v)
	m.mu.Lock()
	drop := m.endLocked(e, v) && !dropped
	if w != nil {
		m.searchLocked(w)
	}
	m.mu.Unlock()
	if drop { // the loop was left meanwhile
		m.drop(v)
	}
	m.mu.Lock()
	caller := m.callLocked()
	m.mu.Unlock()
	if caller != nil {
		caller.Release()
	}
}

// fail deals with the failure of an item: it cancels the rest if it is the first
// that is to. It reports whether the outcome was dropped, as nobody takes it.
func (m *Stream[A, B]) fail(v *tree.Verdict) (dropped bool) {
	echo := v.Echo && tree.StoppedWith(m.s, v.Cause) // asks contexts, so not under the lock
	m.mu.Lock()
	dropped = m.dropping
	first := m.failFast && !m.failed && !echo
	m.failed = m.failed || first
	m.mu.Unlock()
	if dropped {
		m.drop(v)
	}
	if first {
		m.s.Cancel(tree.Canceled(v.Err))
	}
	return dropped
}

// endLocked records how an item ended. It reports whether that is a failure to drop.
func (m *Stream[A, B]) endLocked(e *entry[A, B], v *tree.Verdict) (drop bool) {
	e.ended = true
	if v.Err != nil {
		e.v, e.result.Err = *v, v.Err
	}
	switch {
	case m.dropping:
		m.releaseLocked(e)
	case m.order == AsEnded:
		m.untaken.push(e)
	}
	return m.dropping && v.Err != nil
}

// close sends idle workers home. Items that wait, if the sequence was left by a
// panic, are not begun.
func (m *Stream[A, B]) close() {
	m.mu.Lock()
	m.supply.closed = true
	m.supply.waiting = ring[*entry[A, B]]{}
	idle := m.supply.idle
	m.supply.idle = nil
	m.mu.Unlock()
	for _, w := range idle {
		w.w.Slot = nil // it needs none to end
		w.w.Release()
	}
}
