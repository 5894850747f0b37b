package async

import (
	"container/heap"
	"slices"
)

// A limiter bounds how many tasks run at once. A task needs a slot of the
// limiter of its scope and of every one around that, inner first. One mutex
// serves a limiter and those nested in it, so a slot passes from hand to hand
// in one step.
type limiter struct {
	mu    *mutex // shared with outer; taken after future.mu and scope.mu, before waiter.mu
	outer *limiter
	free  int     // below 0: waits that were cut short took what was not there
	back  []*slot // those who come back from a wait, first come first served, before all others
	queue slotHeap
	seq   uint64

	// pending, of the outermost limiter, are slots of tasks that have been
	// handed to an executor and not begun.
	pending map[*slot]struct{}
}

// newLimiter returns a limiter of n slots inside outer, which may be nil.
func newLimiter(n int, outer *limiter) *limiter {
	l := &limiter{free: n, outer: outer}
	if outer != nil {
		l.mu = outer.mu
	} else {
		l.mu = new(mutex)
		l.pending = make(map[*slot]struct{})
	}
	return l
}

// A slot is one task's claim to run. Its fields are guarded by the limiter's mu.
type slot struct {
	l     *limiter // the innermost
	at    *limiter // where it queues, nil if it does not; it holds one of each inside that
	t     *task
	w     *waiter // set while the task comes back from a wait
	held  bool    // it holds one of every limiter
	loans int     // waits of the task that last; while there are any it holds none
	over  bool    // the task's handler has returned: it needs none any more
	depth int32
	seq   uint64
	index int // in the heap
}

// submit queues t and starts it when it has its slots, which may be now.
func (l *limiter) submit(t *task) {
	s := t.more.slot
	h := t.scope() // a queued task is told of a cancellation, so it has a inner scope
	t.stopped()    // which knows of one that has been
	l.mu.Lock()
	// A cancellation stores its signal and then withdraws, under mu: either we
	// see the signal or it finds us in the queue.
	if h.sig.Load() == nil || l.roomLocked() {
		s.claimLocked(l)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	t.skip()
}

// roomLocked reports whether a slot is free in l and all around it.
func (l *limiter) roomLocked() bool {
	for ; l != nil; l = l.outer {
		if l.free <= 0 {
			return false
		}
	}
	return true
}

// claimLocked takes a slot of every limiter from l outwards, queues where
// there is none, and goes on when it has them all.
func (s *slot) claimLocked(l *limiter) {
	for ; l != nil; l = l.outer {
		if l.free <= 0 {
			s.at = l
			l.enqueueLocked(s)
			return
		}
		l.free--
	}
	s.held = true
	if w := s.w; w != nil {
		s.w = nil
		w.notify(gotSettled)
		return
	}
	if s.t.more.place != nil {
		s.l.outermost().pending[s] = struct{}{}
	}
	go s.t.begin()
}

func (l *limiter) outermost() *limiter {
	for l.outer != nil {
		l = l.outer
	}
	return l
}

// insideOf reports whether slots of l are slots of outer, too.
func (l *limiter) insideOf(outer *limiter) bool {
	for ; l != nil; l = l.outer {
		if l == outer {
			return true
		}
	}
	return false
}

// recallLocked gives l a slot that waits unused for an executor: the executor
// may be waiting for who needs it here. Its task gets another as it begins.
func (l *limiter) recallLocked() {
	for s := range l.outermost().pending {
		if s.held && s.l.insideOf(l) {
			s.held = false
			s.giveBackLocked(nil)
			return
		}
	}
}

// begun is called on the executor's goroutine before the task runs. It waits
// for a slot if that was recalled.
func (s *slot) begun() {
	s.l.mu.Lock()
	delete(s.l.outermost().pending, s)
	if s.held {
		s.l.mu.Unlock()
		return
	}
	w := newWaiter()
	s.w = w
	s.claimLocked(s.l)
	s.l.mu.Unlock()
	w.park()
}

func (l *limiter) enqueueLocked(s *slot) {
	if s.w != nil {
		l.back = append(l.back, s)
		l.recallLocked()
		return
	}
	l.seq++
	s.seq = l.seq
	heap.Push(&l.queue, s)
}

// dispatchLocked hands out what is free.
func (l *limiter) dispatchLocked() {
	for l.free > 0 {
		var s *slot
		switch {
		case len(l.back) > 0:
			s = l.back[0]
			l.back[0] = nil
			l.back = l.back[1:]
		case len(l.queue) > 0:
			s = heap.Pop(&l.queue).(*slot)
		default:
			return
		}
		l.free--
		s.at = nil
		s.claimLocked(l.outer)
	}
}

// retire gives up s for good: the handler has returned. A bare goroutine may
// still wait with the task's ctx, or come back from such a wait.
func (s *slot) retire() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.over = true
	delete(s.l.outermost().pending, s)
	switch w := s.w; {
	case s.held:
		s.held = false
		s.giveBackLocked(nil)
	case w != nil:
		s.leaveQueueLocked()
		w.notify(gotSettled)
	}
}

// leaveQueueLocked takes s, which is coming back, out of the queue it is in and
// gives back what it has got so far.
func (s *slot) leaveQueueLocked() {
	l := s.at
	i := slices.Index(l.back, s)
	l.back = slices.Delete(l.back, i, i+1)
	s.at, s.w = nil, nil
	s.giveBackLocked(l)
}

// giveBackLocked returns one slot to every limiter inside end.
func (s *slot) giveBackLocked(end *limiter) {
	for l := s.l; l != end; l = l.outer {
		l.free++
		l.dispatchLocked()
	}
}

// withdraw takes a queued task out of the queue; false if it has been started.
func (s *slot) withdraw() bool {
	if s == nil {
		return false
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.at == nil || s.w != nil {
		return false
	}
	heap.Remove(&s.at.queue, s.index)
	s.giveBackLocked(s.at)
	s.at = nil
	return true
}

// comeBack ends the loan of w, whose wait is over, and has w notified when it
// may go on: when it has the slot again, or at once if the task still waits
// elsewhere, for then it is some goroutine that was started by hand.
func (s *slot) comeBack(w *waiter) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.w == w {
		return // told before, and queueing
	}
	if w.onLoan {
		w.onLoan = false
		s.loans--
		if s.loans == 0 && !s.over && !s.held {
			s.w = w
			s.claimLocked(s.l)
			return
		}
	}
	w.notify(gotSettled)
}

// force ends the loan of w, whose wait was cut short, if nothing else has, and
// takes the slots back at once, even over the limit: the next that become free
// pay for it.
func (s *slot) force(w *waiter) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	switch {
	case s.w == w:
		s.leaveQueueLocked()
	case w.onLoan:
		w.onLoan = false
		s.loans--
	default:
		return
	}
	if s.loans > 0 || s.over || s.held {
		return
	}
	for l := s.l; l != nil; l = l.outer {
		l.free--
	}
	s.held = true
}

// lend gives up the slot of the task that t runs in, because w is about to
// wait on its goroutine.
func (t *task) lend(w *waiter) {
	for t.kind == kindBody && t.owner != nil {
		t = t.owner.t // a Scope runs on the goroutine of the task it was called in
	}
	if t.more != nil && t.more.slot != nil {
		t.more.slot.lend(w)
	}
}

// lend lends s for the wait of w. Several waits of one task share one loan.
func (s *slot) lend(w *waiter) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.over {
		return
	}
	w.slot, w.onLoan = s, true
	s.loans++
	switch back := s.w; {
	case s.held:
		s.held = false
		s.giveBackLocked(nil)
	case back != nil: // it goes on without, now that the task waits again
		s.leaveQueueLocked()
		back.notify(gotSettled)
	}
}

// lend gives up the slot of the task that w waits for, while it waits for f.
func (w *waiter) lend(f *future) {
	if w.by == nil {
		return
	}
	if h := w.by.inner.Load(); h == nil || h.limit == nil && !w.by.limited() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.settled() { // else there is nothing to wait for
		w.by.lend(w)
	}
}

// limited reports whether t may hold a slot.
func (t *task) limited() bool {
	return t.more != nil && t.more.slot != nil || t.kind == kindBody && t.owner.limit != nil
}

// resume has the slot back after a wait, whatever ended it. The slot may have
// told w so a moment after it parked no more, and nothing else will tell it
// that it is settled now: the next wait must not take that for its own.
func (w *waiter) resume() {
	if w.slot == nil {
		return
	}
	w.slot.force(w)
	w.slot = nil
	w.mu.Lock()
	w.got &^= gotSettled
	w.mu.Unlock()
}

// slotHeap orders queued tasks deepest first, then first come first.
type slotHeap []*slot

func (h slotHeap) Len() int { return len(h) }
func (h slotHeap) Less(i, j int) bool {
	if h[i].depth != h[j].depth {
		return h[i].depth > h[j].depth
	}
	return h[i].seq < h[j].seq
}
func (h slotHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *slotHeap) Push(x any) {
	s := x.(*slot)
	s.index = len(*h)
	*h = append(*h, s)
}
func (h *slotHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return s
}
