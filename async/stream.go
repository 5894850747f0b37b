package async

import (
	"context"
	"iter"
)

// This file is the engine of sequence.go. A sequence runs on the calling
// goroutine, which pulls items while there is room for more and waits while
// there is not. How items come to workers is in supply.go.

// A stream is one call of ForEach, Map or AsCompleted.
type stream[A, B any] struct {
	s        *scope
	crew     crew[*entry[A, B]]
	work     func(context.Context, A) (B, error)
	limit    int // how many items may be unfinished or untaken; 0: any number
	failFast bool
	order    order
	drop     func(v *verdict) // what is done with an outcome that nobody takes
	patience patience         // of the caller
	parked   *waiter          // the caller's, used again and again

	mu       mutex // guards what follows; taken before scope.mu
	supply   supply[A, B]
	pulled   int                // how many items there were so far
	open     int                // how many are unfinished or untaken
	untaken  ring[*entry[A, B]] // those to be taken: with inOrder all that were pulled, else those that have ended
	spare    []*entry[A, B]     // to be used again
	dropping bool               // nobody takes outcomes, they are dropped
	failed   bool               // an item has, and that is to stop the rest
	caller   *waiter            // of the caller while it waits: to be told that what it wants is there
	want     want               // what that is
}

// order is the order in which outcomes are taken.
type order uint8

const (
	inNone  order = iota // they are not
	inOrder              // as they were pulled
	asEnded              // as they ended
)

// want is what the caller waits for.
type want uint8

const (
	wantRoom  want = iota // for another item
	wantEmpty             // nothing unfinished or untaken
)

func newStream[A, B any](s *scope, o *forkOptions, fn any, work func(context.Context, A) (B, error), in order) *stream[A, B] {
	m := &stream[A, B]{s: s, work: work, limit: o.limit, failFast: o.failFast, order: in}
	m.crew.s, m.crew.fn, m.crew.opts = s, fn, o.worker
	m.crew.do, m.crew.next, m.crew.more, m.crew.unrun = m.do, m.next, m.more, m.unrun
	m.crew.tell = func(e *entry[A, B], v *verdict) { m.tell(nil, e, v) }
	m.drop = m.raise
	if in == inNone {
		m.dropping, m.drop = true, m.failScope
	}
	return m
}

// forEach is the body of ForEach. If the sequence panics or calls Goexit, items
// that have not been begun are not.
func (m *stream[A, B]) forEach(items iter.Seq[A]) {
	defer m.close()
	if m.pull(items, func() bool { m.wait(wantRoom); return true }) != nil {
		m.s.recordSkipped() // there may be more
	}
	m.wait(wantEmpty)
}

// iterate is Map and AsCompleted: it ranges over items and has what comes of
// them yielded.
func iterate[A, B any](ctx context.Context, items iter.Seq[A], o *forkOptions, fn any, work func(context.Context, A) (B, error), in order, yield func(Result[B]) bool) {
	s, err := openBody(ctx, newScopeOptions(o.scope), false)
	if err != nil {
		yield(Result[B]{Err: err})
		return
	}
	s.t.observe()
	m := newStream(s, o, fn, work, in)
	through := false
	defer func() { // also when the loop is left by a panic or Goexit, which goes on
		if !through {
			m.leave()
		}
		m.close()
		r := bodyRun{s: s, exit: byReturn}
		var err error
		if r.end(&err); err != nil && (s.signal() == nil || listsErrors(err)) {
			s.home.report(err) // of an observer: the loop has no place for it
		}
	}()
	through = m.loop(items, yield)
}

// listsErrors reports whether err, of a scope that was cancelled, tells of more
// than that.
func listsErrors(err error) bool {
	list, ok := err.(*ScopeError)
	return ok && len(list.Errors) > 0
}

// loop pulls and yields. It reports false if the loop was left.
func (m *stream[A, B]) loop(items iter.Seq[A], yield func(Result[B]) bool) bool {
	going := true
	cut := m.pull(items, func() bool {
		going = m.drain(yield, wantRoom)
		return going
	})
	if !going || !m.drain(yield, wantEmpty) {
		return false
	}
	if cut != nil {
		return yield(Result[B]{Index: m.pulled, Err: cut.asError()})
	}
	return true
}

// pull hands out items as long as goOn, which waits for room for another, says
// so. It stops when the call is cancelled and returns why, as it was seen here:
// asked again it may not be stored yet. An item that fails stops it, too, if
// that is to stop the rest.
func (m *stream[A, B]) pull(items iter.Seq[A], goOn func() bool) (cut *stopError) {
	if cut = m.s.t.stopped(); cut != nil {
		return cut
	}
	for a := range items {
		if cut = m.s.t.stopped(); cut != nil {
			break
		}
		if !m.push(a) {
			break
		}
		if !goOn() {
			return nil
		}
		if cut = m.s.t.stopped(); cut != nil {
			break // there may be no more, but to know that would take a pull
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return nil // the outcomes say it
	}
	return cut
}

// drain yields outcomes, and waits for more, until what is wanted is there. It
// reports false if the loop was left.
func (m *stream[A, B]) drain(yield func(Result[B]) bool, enough want) bool {
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
func (m *stream[A, B]) wait(enough want) {
	for {
		m.mu.Lock()
		over := m.readyLocked(enough)
		m.mu.Unlock()
		if over {
			return
		}
		if m.s.limit == nil && m.patience.willing() {
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

// park parks the caller until somebody sees that it is ready.
func (m *stream[A, B]) park(enough want) {
	if m.parked == nil {
		m.parked = newWaiter()
	}
	m.s.t.lendSlot(m.parked)
	m.mu.Lock()
	over := m.readyLocked(enough)
	if !over {
		m.caller, m.want = m.parked, enough
	}
	m.mu.Unlock()
	if over {
		m.parked.settled() // so that it has its slot back
	}
	m.parked.park()
}

// readyLocked reports whether the caller has something to do.
func (m *stream[A, B]) readyLocked(enough want) bool {
	switch {
	case m.hasOutcomeLocked():
		return true
	case enough == wantRoom:
		return m.limit == 0 || m.open < m.limit
	default:
		return m.open == 0
	}
}

// hasOutcomeLocked reports whether there is an outcome to take.
func (m *stream[A, B]) hasOutcomeLocked() bool {
	u := &m.untaken
	return u.n > 0 && u.buf[u.head].ended
}

// callLocked returns the caller's waiter if it is to be told. That something
// has ended is not enough while items wait: it is told when there is room for
// some more, not for each. Somebody is coming for those that wait.
func (m *stream[A, B]) callLocked() (w *waiter) {
	if m.caller == nil || m.supply.waiting.n > 0 || !m.readyLocked(m.want) {
		return nil
	}
	w, m.caller = m.caller, nil
	return w
}

// leave cancels what was begun: the loop has been left. What ends from here on
// is dropped as it ends.
func (m *stream[A, B]) leave() {
	m.mu.Lock()
	m.dropping = true
	m.supply.waiting = ring[*entry[A, B]]{}
	var dropped []*verdict
	for m.untaken.n > 0 {
		if e := m.untaken.pop(); e.ended && e.result.Err != nil {
			dropped = append(dropped, &e.v)
		}
	}
	m.mu.Unlock()
	m.s.cancel(canceled(ErrDecided))
	for _, v := range dropped {
		m.drop(v)
	}
}

// raise deals with an outcome after the loop was left: only what is too loud
// to be dropped is told.
func (m *stream[A, B]) raise(v *verdict) {
	switch {
	case v.panic != nil:
		m.s.failWithOutcome(v)
	case v.mustRaise():
		m.s.home.report(v.err)
	}
}

// failScope deals with an outcome in ForEach: errors are the scope's.
func (m *stream[A, B]) failScope(v *verdict) {
	switch {
	case (v.panic != nil || m.failFast) && !m.s.isEcho(v):
		m.s.failWithOutcome(v)
	default:
		m.s.recordOutcome(v)
	}
}
