package async

import (
	"context"
	"iter"
)

// This file is the engine of what consumes sequences: ForEach, Map and
// AsCompleted. The sequence runs on the calling goroutine, which hands each
// item to a worker and waits while there is no room for more.

// A stream is one such call. Items are counted from 0 in the order in which
// they are pulled.
type stream[A, B any] struct {
	crew
	limit    int // 0: none
	failFast bool
	anyOrder bool // results are taken as they end, not as they were pulled
	work     func(context.Context, A) (B, error)
	drop     func(v *verdict) // what is done with outcomes that nobody takes

	mu      mutex // guards what follows; taken before scope.mu
	entries map[int]*entry[A, B]
	pulled  int
	taken   int            // the next to take, unless anyOrder
	ended   []*entry[A, B] // in the order they did; only if anyOrder
	idle    []*worker
	closed  bool    // no more items will come
	nobody  bool    // takes outcomes: they are dropped
	tripped bool    // by FailFast
	caller  *waiter // to be told that an item has ended

	parked *waiter // the caller's, used again and again
}

// An entry is an item that is unfinished, or whose outcome was not taken yet.
type entry[A, B any] struct {
	item   A
	result Result[B]
	v      verdict
	ended  bool
}

func newStream[A, B any](s *scope, o *forkOptions, fn any, work func(context.Context, A) (B, error)) *stream[A, B] {
	m := &stream[A, B]{limit: o.limit, failFast: o.failFast, work: work, entries: make(map[int]*entry[A, B])}
	m.crew = crew{s: s, fn: fn, do: m.do, done: m.done, next: m.next, timeout: o.timeout}
	m.drop = m.raise
	return m
}

// forEach is the body of ForEach.
func (m *stream[A, B]) forEach(items iter.Seq[A]) {
	defer m.close()
	m.nobody, m.drop = true, m.failScope
	for a := range items {
		if m.s.t.stopped() != nil {
			m.s.noteSkipped()
			return
		}
		m.launch(a)
		m.wait(m.hasRoom)
		if m.s.t.stopped() != nil { // pull no more, of which there may be some
			m.s.noteSkipped()
			return
		}
	}
}

// iterate is Map and AsCompleted: it ranges over items and has what comes of
// them yielded.
func iterate[A, B any](ctx context.Context, items iter.Seq[A], o *forkOptions, fn any, work func(context.Context, A) (B, error), anyOrder bool, yield func(Result[B]) bool) {
	s, err := openBody(ctx, newScopeOptions(o.scope), false)
	if err != nil {
		yield(Result[B]{Err: err})
		return
	}
	s.t.observe()
	m := newStream(s, o, fn, work)
	m.anyOrder = anyOrder
	through := false
	defer func() { // also when the loop is left by a panic or Goexit, which goes on
		if !through {
			m.leave()
		}
		m.close()
		r := bodyRun{exit: byReturn}
		if err := r.close(s); err != nil && s.signal() == nil {
			s.home.report(err) // of an observer: the loop has no place for it
		}
	}()
	through = m.loop(items, yield)
}

// loop pulls, launches and yields. It reports false if the loop was left.
func (m *stream[A, B]) loop(items iter.Seq[A], yield func(Result[B]) bool) bool {
	cut := m.s.t.stopped() != nil
	if !cut {
		for a := range items {
			if cut = m.s.t.stopped() != nil; cut {
				break
			}
			m.launch(a)
			if !m.drain(yield, m.hasRoom) {
				return false
			}
			if cut = m.s.t.stopped() != nil; cut {
				break // and pull no more
			}
		}
	}
	if !m.drain(yield, m.isEmpty) {
		return false
	}
	if sg := m.s.signal(); cut && !m.tripped {
		return yield(Result[B]{Index: m.pulled, Err: sg.told()})
	}
	return true
}

// drain yields what can be, and waits for more, until enough says so. It
// reports false if the loop was left.
func (m *stream[A, B]) drain(yield func(Result[B]) bool, enough func() bool) bool {
	for {
		m.wait(func() bool { return m.head() != nil || enough() })
		m.mu.Lock()
		e := m.head()
		if e == nil {
			m.mu.Unlock()
			return true
		}
		delete(m.entries, e.result.Index)
		if m.anyOrder {
			m.ended = m.ended[1:]
		} else {
			m.taken++
		}
		m.mu.Unlock()
		if !yield(e.result) {
			return false
		}
	}
}

// head returns the next outcome to take, nil if that is not there yet. It and
// the two below are called with mu held.
func (m *stream[A, B]) head() *entry[A, B] {
	if m.anyOrder {
		if len(m.ended) > 0 {
			return m.ended[0]
		}
		return nil
	}
	if e := m.entries[m.taken]; e != nil && e.ended {
		return e
	}
	return nil
}

func (m *stream[A, B]) hasRoom() bool { return m.limit == 0 || len(m.entries) < m.limit }

func (m *stream[A, B]) isEmpty() bool { return len(m.entries) == 0 }

// wait parks the caller until ready, which is called with mu held. Its task
// lends its slot meanwhile.
func (m *stream[A, B]) wait(ready func() bool) {
	for {
		m.mu.Lock()
		over := ready()
		m.mu.Unlock()
		if over {
			return
		}
		if m.parked == nil {
			m.parked = newWaiter()
		}
		m.s.t.lendSlot(m.parked)
		m.mu.Lock()
		over = ready()
		if !over {
			m.caller = m.parked
		}
		m.mu.Unlock()
		if over {
			m.parked.settled() // so that it has its slot back
		}
		m.parked.park()
	}
}

// launch gives item a to an idle worker or starts one.
func (m *stream[A, B]) launch(a A) {
	m.mu.Lock()
	i := m.pulled
	m.pulled++
	m.entries[i] = &entry[A, B]{item: a, result: Result[B]{Index: i}}
	var w *worker
	if n := len(m.idle); n > 0 {
		w = m.idle[n-1]
		m.idle = m.idle[:n-1]
		w.i = i
	}
	m.mu.Unlock()
	if w != nil {
		w.w.settled()
	} else {
		m.start(new(worker), i)
	}
}

// do is the work on item i.
func (m *stream[A, B]) do(ctx context.Context, i int) (err error) {
	m.mu.Lock()
	e := m.entries[i]
	m.mu.Unlock()
	e.result.Value, err = m.work(ctx, e.item)
	return err
}

// done notes how item i ended, and that free is idle. Both in one step, so
// that there are never more workers than the limit. The caller is told last,
// when what follows from it can be seen.
func (m *stream[A, B]) done(i int, v *verdict, free *worker) {
	if free != nil && m.keeps() {
		free.rest()
	}
	if v.err == errNotBegun {
		sg := m.s.t.stopped()
		v = &verdict{err: sg.told(), echo: true, cause: sg.cause}
	}
	echo := m.s.echoes(v)
	m.mu.Lock()
	e := m.entries[i]
	e.v, e.result.Err, e.ended = *v, v.err, true
	drop := m.nobody
	switch {
	case drop:
		delete(m.entries, i)
	case m.anyOrder:
		m.ended = append(m.ended, e)
	}
	trip := m.failFast && v.err != nil && !m.tripped && !echo
	m.tripped = m.tripped || trip
	w := m.caller
	m.caller = nil
	if free != nil && m.keeps() {
		m.idle = append(m.idle, free)
	}
	closed := m.closed
	m.mu.Unlock()
	if closed {
		m.close()
	}
	if drop {
		m.drop(v)
	}
	if trip {
		m.s.cancel(canceled(v.err))
	}
	if w != nil {
		w.settled()
	}
}

// keeps reports whether workers are kept for the next item. On an executor they
// would take the places of those that are to come.
func (m *stream[A, B]) keeps() bool { return m.limit > 0 && m.s.on == nil }

// rest makes w ready to be idle: its task lends its slot.
func (w *worker) rest() {
	if w.w == nil {
		w.w = newWaiter()
	}
	w.t.lendSlot(w.w)
	w.i = -1
}

// next parks an idle worker until it is given another item or sent home.
func (m *stream[A, B]) next(w *worker) (i int, ok bool) {
	if w == nil || !m.keeps() {
		return 0, false
	}
	w.w.park()
	return w.i, w.i >= 0
}

// close sends idle workers home.
func (m *stream[A, B]) close() {
	m.mu.Lock()
	m.closed = true
	idle := m.idle
	m.idle = nil
	m.mu.Unlock()
	for _, w := range idle {
		w.w.slot = nil // it needs none to end
		w.w.settled()
	}
}

// leave cancels what was begun: the loop has been left. What ends from here on
// is dropped as it ends.
func (m *stream[A, B]) leave() {
	m.mu.Lock()
	m.nobody = true
	var untaken []verdict
	for i, e := range m.entries {
		if e.ended {
			untaken = append(untaken, e.v)
			delete(m.entries, i)
		}
	}
	m.mu.Unlock()
	m.s.cancel(canceled(ErrDecided))
	for i := range untaken {
		m.drop(&untaken[i])
	}
}

// raise deals with an outcome after the loop was left: only what is too loud
// to be dropped is told.
func (m *stream[A, B]) raise(v *verdict) {
	switch {
	case v.panic != nil:
		m.s.failWith(v)
	case v.mustRaise():
		m.s.home.report(v.err)
	}
}

// failScope deals with an outcome in ForEach: errors are the scope's.
func (m *stream[A, B]) failScope(v *verdict) {
	switch {
	case v.err == nil:
	case v.panic != nil:
		m.s.failWith(v)
	case m.s.echoes(v):
		m.s.noteEcho()
	case m.failFast:
		m.s.fail(v.err, nil)
	default:
		m.s.noteFailure(v.err)
	}
}
