package items

import (
	"iter"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the caller of a stream: the goroutine that ranges over a sequence,
// pulls items while there is room for more, yields outcomes, and waits while there
// is neither. It never does an item itself.

// want is what the caller waits for.
type want uint8

const (
	wantRoom  want = iota // for another item
	wantEmpty             // nothing unfinished or untaken
)

// loop pulls and yields. It reports false if the loop was left: by yield, which is
// the body of the user's range statement.
func (m *Stream[A, B]) loop(items iter.Seq[A], yield func(Result[B]) bool) bool {
	going := true
	cut := m.pull(items, func() bool {
		going = m.drain(yield, wantRoom)
		return going
	})
	if !going || !m.drain(yield, wantEmpty) {
		return false
	}
	if cut != nil {
		return yield(Result[B]{Index: m.pulled, Err: cut.AsError()})
	}
	return true
}

// pull hands out items as long as goOn, which waits for room for another, says
// so. It stops when the call is cancelled and returns why, as it was seen here:
// asked again it may not be stored yet. An item that fails stops it, too, if
// that is to stop the rest.
func (m *Stream[A, B]) pull(items iter.Seq[A], goOn func() bool) (cut *tree.StopError) {
	if cut = m.s.Task.Stopped(); cut != nil {
		return cut
	}
	for a := range items {
		if cut = m.s.Task.Stopped(); cut != nil {
			break
		}
		if !m.push(a) {
			break
		}
		if !goOn() {
			return nil
		}
		if cut = m.s.Task.Stopped(); cut != nil {
			break // there may be no more, but to know that would take a pull
		}
	}
	// An item that fails cancels the call after it has set failed, so it is seen
	// here whenever its cancellation was seen above.
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return nil // the outcomes say it
	}
	return cut
}

// drain yields outcomes, and waits for more, until what is wanted is there. It
// reports false if the loop was left.
func (m *Stream[A, B]) drain(yield func(Result[B]) bool, enough want) bool {
	for {
		m.wait(enough)
		m.mu.Lock()
		if !m.hasOutcomeLocked() {
			m.mu.Unlock()
			return true
		}
		e := m.untaken.pop()
		r := e.result
		m.releaseLocked(e)
		m.mu.Unlock()
		if !yield(r) {
			return false
		}
	}
}

// wait blocks the caller until there is what it wants, or an outcome to take.
// Its task lends its slot meanwhile.
func (m *Stream[A, B]) wait(enough want) {
	for {
		m.mu.Lock()
		over := m.readyLocked(enough)
		m.mu.Unlock()
		if over {
			return
		}
		if m.s.Limit == nil && m.patience.willing() {
			m.patience.yield()
			m.mu.Lock()
			over = m.readyLocked(enough)
			m.mu.Unlock()
			if m.patience.helped(over); over {
				return
			}
		}
		m.park(enough)
	}
}

// park parks the caller until somebody sees that it is ready. It looks once more
// under the lock under which items end: either an item has ended before, and the
// caller sees it, or it finds the caller's waiter.
func (m *Stream[A, B]) park(enough want) {
	if m.parked == nil {
		m.parked = tree.NewWaiter()
	}
	m.mu.Lock()
	if m.readyLocked(enough) {
		m.mu.Unlock()
		return
	}
	m.s.Task.LendSlot(m.parked)
	m.caller, m.want = m.parked, enough
	m.mu.Unlock()
	m.parked.Park()
}

// readyLocked reports whether the caller has something to do.
func (m *Stream[A, B]) readyLocked(enough want) bool {
	switch {
	case m.hasOutcomeLocked():
		return true
	case enough == wantRoom:
		return m.limit == 0 || m.open < m.limit
	default:
		return m.open == 0
	}
}

// hasOutcomeLocked reports whether there is an outcome to take. With InOrder that is
// the one of the oldest item: while this goes on all others wait behind it.
func (m *Stream[A, B]) hasOutcomeLocked() bool {
	u := &m.untaken
	return u.n > 0 && u.buf[u.head].ended
}

// callLocked returns the caller's waiter if it is to be told. The end of something is not enough
// while items wait: it is told when there is room for
// some more, not for each. Somebody is coming for those that wait.
func (m *Stream[A, B]) callLocked() (w *tree.Waiter) {
	if m.caller == nil || m.supply.waiting.n > 0 || !m.readyLocked(m.want) {
		return nil
	}
	w, m.caller = m.caller, nil
	return w
}

// A ring is a queue in a slice that is used again and again. The zero value is
// empty.
type ring[T any] struct {
	buf  []T // its length is a power of two, or 0
	head int // where the first one is
	n    int // how many there are
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

// pop takes the first one off a ring that is not empty.
func (r *ring[T]) pop() T {
	var none T
	v := r.buf[r.head]
	r.buf[r.head] = none // so that it can be collected
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring[T]) grow() {
	bigger := make([]T, max(4, 2*len(r.buf)))
	n := copy(bigger, r.buf[r.head:])
	copy(bigger[n:], r.buf[:r.head])
	r.buf, r.head = bigger, 0
}
