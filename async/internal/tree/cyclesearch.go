package tree

import "slices"

// A cycleSearch looks for a ring of waits that a wait of me for f would close.
type cycleSearch struct {
	me *Task
	f  *Future
	// budget is how many steps may be taken yet: a step is a task, a wait, or a
	// level that was looked at. Below 0 the search is given up, and what it has
	// not found says nothing.
	budget int

	edges []edge             // the waits that were seen, in the order in which they were
	todo  []step             // the tasks that are still to be looked at
	seen  map[*Task]struct{} // the tasks that were; nil while there are none
}

// searches has what earlier searches needed: deep in a tree each wait makes some, and without
// this they allocated more than all else does.
var searches = Pool{New: func() any { return new(cycleSearch) }}

// largeSearch is how many waits or tasks a search may have seen whose memory is kept.
const largeSearch = 256

// begin prepares s for one direction, in which it may take so many steps.
func (s *cycleSearch) begin(me *Task, f *Future, budget int) {
	s.me, s.f, s.budget = me, f, budget
	s.edges, s.todo = s.edges[:0], s.todo[:0]
	if len(s.seen) > largeSearch {
		s.seen = nil // or a large map would be kept, and cleared each time
	}
	clear(s.seen)
}

// release gives s back for later searches. It keeps no task and no future.
func (s *cycleSearch) release() {
	if max(cap(s.edges), cap(s.todo), len(s.seen)) > largeSearch {
		return
	}
	clear(s.edges[:cap(s.edges)])
	clear(s.todo[:cap(s.todo)])
	s.begin(nil, nil, 0)
	searches.Put(s)
}

// visit reports whether t has not been visited before.
func (s *cycleSearch) visit(t *Task) bool {
	if _, before := s.seen[t]; before {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[*Task]struct{})
	}
	s.seen[t] = struct{}{}
	return true
}

// holdsUp reports whether u cannot settle before t: t is u, or is part of it. A
// choice, which settles when it is decided, is held up only by contenders that
// it cannot do without.
func (s *cycleSearch) holdsUp(t, u *Task) bool {
	for start := t; t != nil && levelOf(t) >= levelOf(u); t = upFrom(t) {
		s.budget--
		if t == u {
			return t == start || mayHang(t)
		}
	}
	return false
}

// mayHang reports whether t cannot settle without what was started in it. So it is for all but
// a choice that may yet be decided by another contender.
func mayHang(t *Task) bool {
	return t.Kind != KindChoice || t.Self.(interface{ NeedsAllLeft() bool }).NeedsAllLeft()
}

// A step is a task that a search has come to, by way of an edge.
type step struct {
	t     *Task
	after int
}

// forward searches from f, through what it waits for, for a future that me holds
// up. It returns the waits from f to there, in order, and whether it has seen
// everything.
func (s *cycleSearch) forward() (ring []edge, complete bool) {
	if !mayHang(&s.f.Task) {
		return nil, true
	}
	s.todo = append(s.todo, step{&s.f.Task, -1})
	for len(s.todo) > 0 {
		// The wait of a task is looked at with the lock of its scope held, and
		// followed without: no two locks are ever held in a search.
		at := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		first := len(s.edges)
		s.waitsOf(at)
		for i := first; i < len(s.edges) && s.budget >= 0; i++ {
			on := &s.edges[i].on.Task
			if s.holdsUp(s.me, on) {
				ring = s.wayTo(i)
				slices.Reverse(ring) // it was followed from the last to the first
				return ring, true
			}
			// A leaf waits for nobody. If it does later, it sees our wait, which
			// was registered before; so nothing is missed by passing it over.
			if !isLeaf(on) && mayHang(on) && s.visit(on) {
				s.todo = append(s.todo, step{on, i})
			}
		}
		if s.budget < 0 {
			return nil, false
		}
	}
	return nil, true
}

// waitsOf adds to the edges what the task of at waits for itself, and to todo
// what was started in it.
func (s *cycleSearch) waitsOf(at step) {
	s.budget--
	h := at.t.Inner.Load()
	if h == nil || h.isShared() {
		return
	}
	if w := h.parker.Load(); w != nil {
		s.addWait(w, at)
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for w := h.listeners; w != nil && s.budget >= 0; w = w.lnext {
		s.budget--
		s.addWait(w, at)
	}
	if h.leftTasks.Load() {
		return // what it has left behind is no part of it
	}
	for c := h.children; c != nil && s.budget >= 0; c = c.next {
		s.budget--
		if !isLeaf(c) {
			s.todo = append(s.todo, step{c, at.after})
		}
	}
}

// addWait adds the wait of w, if it waits for a future now.
func (s *cycleSearch) addWait(w *Waiter, at step) {
	serial := w.serial.Load()
	if on := w.waitsFor(serial); on != nil {
		s.edges = append(s.edges, edge{w, serial, at.t, on, at.after})
	}
}

// backward searches from me, through what waits for it, for a task that holds
// up f. It returns the waits from there to me, in order, and whether it has seen
// everything.
func (s *cycleSearch) backward() (ring []edge, complete bool) {
	s.todo = append(s.todo, step{s.me, -1})
	for i := 0; i < len(s.todo); i++ {
		// Whatever waits for anything that a task is part of waits for that task.
		for t, inside := s.todo[i].t, false; t != nil; t, inside = upFrom(t), true {
			if s.budget--; s.budget < 0 {
				return nil, false
			}
			// Where the search has been, it has been on everything around, too. But
			// it may come to a choice twice: from a contender that the choice can do
			// without, and from one that it cannot.
			if t.Kind != KindChoice && !s.visit(t) {
				break
			}
			if t.Self == nil || t.Self.Future() == nil || inside && !mayHang(t) {
				continue
			}
			first := len(s.edges)
			s.waitersOf(t.Self.Future(), s.todo[i].after)
			for j := first; j < len(s.edges) && s.budget >= 0; j++ {
				if s.holdsUp(s.edges[j].by, &s.f.Task) {
					return s.wayTo(j), true
				}
				s.todo = append(s.todo, step{s.edges[j].by, j})
			}
		}
	}
	return nil, s.budget >= 0
}

// waitersOf adds the waits for f to the edges.
func (s *cycleSearch) waitersOf(f *Future, after int) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for w := f.waiters; w != nil && s.budget >= 0; w = w.next {
		s.budget--
		if w.by != nil {
			s.edges = append(s.edges, edge{w, w.serial.Load(), w.by, f, after})
		}
	}
}

// wayTo returns the edges that the search has followed to come to edge i, that
// one first.
func (s *cycleSearch) wayTo(i int) (way []edge) {
	for ; i >= 0; i = s.edges[i].after {
		way = append(way, s.edges[i])
	}
	return way
}

// An edge is one wait that was seen: task by waits for on. The same waiter with
// the same serial is the same wait.
type edge struct {
	w      *Waiter
	serial int64
	by     *Task
	on     *Future
	after  int // the edge from which the search came to this one; -1: none
}

// lasts reports whether the wait goes on. If it does now, it has all the time
// since it was seen, because a serial is used once.
func (e *edge) lasts() bool { return e.w.waitsFor(e.serial) == e.on && mayHang(&e.on.Task) }

// waitsFor returns the future that w waits for in the wait with that serial, nil
// if that wait is over.
func (w *Waiter) waitsFor(serial int64) *Future {
	on := w.on.Load()
	if serial&1 == 0 || w.serial.Load() != serial {
		return nil
	}
	return on
}

// wholeOf returns the task that t is a run of, which has its name; t itself if it is none.
func wholeOf(t *Task) *Task {
	if t.Kind == KindRun {
		return t.Owner.Task
	}
	return t
}

// isLeaf reports whether t has started and awaited nothing so far.
func isLeaf(t *Task) bool {
	h := t.Inner.Load()
	return h == nil || h.isShared()
}

// upFrom returns the task that t is part of, nil for none: what a scope has left
// behind is no part of it.
func upFrom(t *Task) *Task {
	if t.Owner == nil || t.Owner.leftTasks.Load() {
		return nil
	}
	return t.Owner.Task
}

// levelOf returns how many tasks are around t, or less: no task is part of one whose
// level is greater.
func levelOf(t *Task) int32 {
	if t.Owner == nil {
		return -1
	}
	return t.Owner.depth
}
