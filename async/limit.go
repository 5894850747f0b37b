package async

import "github.com/ambit-go/ambit/async/internal/slots"

// This file is about Limit. Package slots decides which tasks may run. Here the
// limiter is locked, package slots is told what has happened, and what it
// answers is done when the limiter is not locked any more.

// newLimiter returns a limiter of n slots inside outer, which may be nil. That
// is outer itself, if n is too large to make a difference.
func newLimiter(n int, outer *limiter) *limiter {
	if outer == nil {
		return &limiter{new(mutex), slots.NewLimiter[*task, *waiter](n, nil)}
	}
	core := slots.NewLimiter(n, outer.core)
	if core == outer.core {
		return outer
	}
	return &limiter{outer.mu, core}
}

// layerIn returns a limiter inside outer that changes nothing until it is cut off.
func layerIn(outer *limiter) *limiter {
	return &limiter{outer.mu, slots.NewLayer(outer.core)}
}

// cutOff has l, and all that is inside it, be no part of the limiters around it any more.
func (l *limiter) cutOff() {
	var room grants
	l.mu.Lock()
	l.core.Cut()
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	actOn(answer)
}

// limiterOf returns the limiter of s.
func limiterOf(s *slot) *limiter { return s.Owner.owner.limit }

// actOn does what the answer of an event says. The limiter is not locked: a task
// that is notified may run at once, and lock it.
func actOn(answer []grant) {
	for _, g := range answer {
		if g.Wait != nil {
			g.Wait.Owner.notify(gotSettled | gotSlot)
		} else {
			go startInTurn(g.Task.Owner)
		}
	}
}

// limited is what a task under a Limit needs beside itself, in one piece.
type limited struct {
	more
	s slot
}

// newMoreWithSlot returns a more with a slot of l for t.
func (l *limiter) newMoreWithSlot(t *task, depth int32) *more {
	m := new(limited)
	m.s.Owner, m.s.Limiter, m.s.Depth = t, l.core, depth
	m.slot = &m.s
	return &m.more
}

// submit starts t if there is a slot for it, else it queues. If t would queue
// and its context is done, it is skipped at once.
//
// A task that goes through an executor is not started either if its context is
// done. It may have been cancelled before it comes to be submitted, and its slot
// retired; then nothing is left to do.
func (t *task) submit() {
	beFindable(t)
	if t.more.delivery != nil && !isWanted(t) {
		return
	}
	s, l := t.more.slot, t.owner.limit
	s.Priority, s.ByExecutor = t.more.priority, t.more.delivery != nil
	l.mu.Lock()
	granted := s.Submit()
	l.mu.Unlock()
	switch {
	case granted && s.ByExecutor:
		go deliver(t)
	case granted:
		go t.main()
	default:
		// A cancellation stores its cause and then looks for t in the queue. We have
		// put t there and then look for a cause. One of the two sees the other.
		if sg := t.stopped(); sg != nil {
			t.skipIfQueued(sg)
		}
	}
}

// beFindable makes the inner scope of t, which is to queue, if it was started with
// a ctx that decides alone when it is cancelled: the inner scope listens to that.
// Any other queues without: the cancellation of its owner finds it among the
// children.
func beFindable(t *task) {
	if t.derived() != nil {
		t.scope()
	}
}

// mayQueue reports whether t may be on its way to its handler.
func (t *task) mayQueue() bool {
	m := t.more
	return m != nil && (m.slot != nil || m.delivery != nil) && t.state.Load() == stateQueued
}

// skipIfQueued skips t, whose context is done because of sg, unless its handler
// has been let go. Several goroutines may come to this at the same time, and
// another to the start of t. One of them wins: for a task that goes through an
// executor its delivery decides which, for another the queue, which t leaves once.
func (t *task) skipIfQueued(sg *stopError) {
	if t.more == nil || t.state.Load() != stateQueued {
		return
	}
	if d := t.more.delivery; d != nil && d.decide() || d == nil && withdraw(t) {
		skip(t, sg)
	}
}

// withdraw takes t out of the queue; false if it is not there, or not any more.
func withdraw(t *task) bool {
	s := t.more.slot
	if s == nil {
		return false
	}
	var room grants
	l := t.owner.limit
	l.mu.Lock()
	withdrawn := s.Withdraw()
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	actOn(answer)
	return withdrawn
}

// startInTurn is the goroutine of a task that has queued and has its slot now.
// It looks at the context once more: a cancellation that came after the slot did
// not find the task in the queue.
func startInTurn(t *task) {
	if exploring {
		defer starts("begin", t)()
	}
	if t.more.delivery != nil {
		deliver(t)
	} else if sg := t.stopped(); sg != nil {
		skip(t, sg)
	} else {
		t.main()
	}
}

// awaitSlot is called on the executor's goroutine before t runs there. If the
// slot was given to another meanwhile, it blocks until t has one again, or has
// been cancelled.
func awaitSlot(t *task) {
	s := t.more.slot
	if s == nil {
		return
	}
	w := waiters.Get().(*waiter)
	var room grants
	l := t.owner.limit
	l.mu.Lock()
	runs := s.Begin(&w.loan)
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	actOn(answer)
	if !runs {
		w.park() // once, for what nobody else knows of
	}
	waiters.Put(w)
}

// retire gives up the slot of t for good, if it has one: its handler has
// returned, or will never run. A bare goroutine may still wait with the context
// of t.
func (t *task) retire() {
	if t.more != nil && t.more.slot != nil { // measured: so it costs nothing where there is no Limit
		retireSlot(t)
	}
}

func retireSlot(t *task) {
	var room grants
	l := t.owner.limit
	l.mu.Lock()
	t.more.slot.Retire()
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	actOn(answer)
}

// slotInUse returns the slot that code with the context of t runs in, nil if
// there is none. A body has none of its own: it runs on the goroutine of the
// task that opened its scope.
func slotInUse(t *task) *slot {
	if h := t.inner.Load(); h != nil {
		return h.slot
	}
	if t.more != nil {
		return t.more.slot
	}
	return nil
}

// lendSlot lends the slot that t runs in, if there is one, while w waits on the
// goroutine of t. The goroutine that ends the wait calls w.release; the wait ends
// with takeSlotBack, or not at all if t retires first. The caller may hold the lock of
// what w waits for: lendSlot calls no code of users.
func (t *task) lendSlot(w *waiter) {
	w.slot = nil
	s := slotInUse(t)
	if s == nil {
		return
	}
	var room grants
	l := limiterOf(s)
	l.mu.Lock()
	lent := s.Lend(&w.loan)
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	if lent {
		w.slot = s
	}
	actOn(answer)
}

// lendSlotFor lends the slot of the task that w waits for, which has one, while it
// waits for f.
func (w *waiter) lendSlotFor(f *future) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.settled() { // else there is nothing to wait for
		w.by.lendSlot(w)
	}
}

// returnSlot is called when what w waits for has happened. w is notified when
// its task has the slot again, in turn.
func (w *waiter) returnSlot() {
	var room grants
	l := limiterOf(w.slot)
	l.mu.Lock()
	w.slot.Return(&w.loan)
	answer := l.core.Take(room[:0])
	l.mu.Unlock()
	actOn(answer)
}

// takeSlotBack ends the loan of w, whose wait is over; got is what it has got so
// far. A wait that was cut short has its slot at once, even over the limit.
//
// If w stands in an answer by then, the goroutine that was given that answer
// notifies w after it has unlocked the limiter, perhaps only now. That notice
// belongs to this wait: we wait for it, so the next wait of w cannot take it for
// its own.
func (w *waiter) takeSlotBack(got uint8) {
	if w.slot != nil {
		w.endLoan(got)
	}
}

func (w *waiter) endLoan(got uint8) {
	l := limiterOf(w.slot)
	l.mu.Lock()
	granted := w.slot.TakeBack(&w.loan)
	l.mu.Unlock()
	w.slot = nil
	for granted && got&gotSlot == 0 {
		got |= w.park()
	}
}

// release tells w that what it waits for has happened. A waiter that lent its
// slot first queues to get it back, before anything new is started.
func (w *waiter) release() {
	switch {
	case w.done != nil:
		close(w.done)
	case w.slot != nil:
		w.returnSlot()
	default:
		w.notify(gotSettled)
	}
}
