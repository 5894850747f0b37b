package tree

import "github.com/ambit-go/ambit/async/internal/slots"

// This file is about Limit. Package slots decides which tasks may run. Here the
// limiter is locked, package slots is told what has happened, and what it
// answers is done when the limiter is not locked any more.

// newLimiter returns a limiter of n slots inside outer, which may be nil. It is outer itself,
// if n is too large to make a difference.
func newLimiter(n int, outer *limiter) *limiter {
	if outer == nil {
		return &limiter{new(Mutex), slots.NewLimiter[*Task, *Waiter](n, nil)}
	}
	core := slots.NewLimiter(n, outer.Core)
	if core == outer.Core {
		return outer
	}
	return &limiter{outer.mu, core}
}

// layerIn returns a limiter inside outer that changes nothing until it is cut off.
func layerIn(outer *limiter) *limiter {
	return &limiter{outer.mu, slots.NewLayer(outer.Core)}
}

// cutOff has l, and all that is inside it, be no part of the limiters around it any more.
func (l *limiter) cutOff() {
	l.mu.Lock()
	l.Core.Cut()
	l.unlock()
}

// limiterOf returns the limiter of s.
func limiterOf(s *slot) *limiter { return s.Owner.Owner.Limit }

// unlock unlocks l after an event, and does what the answer says: a task that is notified
// may run at once, and lock l.
func (l *limiter) unlock() {
	var room [2]grant // more than two is rare
	answer := l.Core.Take(room[:0])
	l.mu.Unlock()
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
	More
	s slot
}

// newMoreWithSlot returns a More with a slot of l for t.
func (l *limiter) newMoreWithSlot(t *Task, depth int32) *More {
	m := new(limited)
	m.s.Owner, m.s.Limiter, m.s.Depth = t, l.Core, depth
	m.slot = &m.s
	return &m.More
}

// submit starts t if there is a slot for it, else it queues. If t would queue
// and its context is done, it is skipped at once.
//
// A task that goes through an executor is not started either if its context is
// done. It may have been cancelled before it comes to be submitted, and its slot
// retired; then nothing is left to do.
func (t *Task) submit() {
	beFindable(t)
	if t.More.Delivery != nil && !isWanted(t) {
		return
	}
	s, l := t.More.slot, t.Owner.Limit
	s.Priority, s.ByExecutor = t.More.Priority, t.More.Delivery != nil
	l.mu.Lock()
	granted := s.Submit()
	l.mu.Unlock()
	switch {
	case granted && s.ByExecutor:
		go deliver(t)
	case granted:
		go t.Main()
	default:
		// A cancellation stores its cause and then looks for t in the queue. We have
		// put t there and then look for a cause. One of the two sees the other.
		if stop := t.Stopped(); stop != nil {
			t.skipIfQueued(stop)
		}
	}
}

// beFindable makes the inner scope of t, which is to queue, if it was started with
// a ctx that decides alone when it is cancelled: the inner scope listens to that.
// Any other queues without: the cancellation of its owner finds it among the
// children.
func beFindable(t *Task) {
	if t.derived() != nil {
		t.Scope()
	}
}

// mayQueue reports whether t may be on its way to its handler.
func (t *Task) mayQueue() bool {
	m := t.More
	return m != nil && (m.slot != nil || m.Delivery != nil) && t.State.Load() == StateQueued
}

// skipIfQueued skips t, whose context is done because of stop, unless its handler
// has been let go. Several goroutines may come to this at the same time, and
// another to the start of t. One of them wins: for a task that goes through an
// executor its delivery decides which, for another the queue, which t leaves once.
func (t *Task) skipIfQueued(stop *StopError) {
	if t.More == nil || t.State.Load() != StateQueued {
		return
	}
	if d := t.More.Delivery; d != nil && d.Decide() || d == nil && withdraw(t) {
		skip(t, stop)
	}
}

// withdraw takes t out of the queue; false if it is not there, or not any more.
func withdraw(t *Task) bool {
	s := t.More.slot
	if s == nil {
		return false
	}
	l := t.Owner.Limit
	l.mu.Lock()
	withdrawn := s.Withdraw()
	l.unlock()
	return withdrawn
}

// startInTurn is the goroutine of a task that has queued and has its slot now.
// It looks at the context once more: a cancellation that came after the slot did
// not find the task in the queue.
func startInTurn(t *Task) {
	if Exploring {
		defer Starts("begin", t)()
	}
	if t.More.Delivery != nil {
		deliver(t)
	} else if stop := t.Stopped(); stop != nil {
		skip(t, stop)
	} else {
		t.Main()
	}
}

// awaitSlot is called on the executor's goroutine before t runs there. If the
// slot was given to another meanwhile, it blocks until t has one again, or has
// been cancelled.
func awaitSlot(t *Task) {
	s := t.More.slot
	if s == nil {
		return
	}
	w := waiters.Get().(*Waiter)
	l := t.Owner.Limit
	l.mu.Lock()
	runs := s.Begin(&w.loan)
	l.unlock()
	if !runs {
		w.Park() // once, for what nobody else knows of
	}
	waiters.Put(w)
}

// Retire gives up the slot of t for good, if it has one: its handler has
// returned, or will never run. A bare goroutine may still wait with the context
// of t.
func (t *Task) Retire() {
	if t.More != nil && t.More.slot != nil { // measured: so it costs nothing where there is no Limit
		retireSlot(t)
	}
}

func retireSlot(t *Task) {
	l := t.Owner.Limit
	l.mu.Lock()
	t.More.slot.Retire()
	l.unlock()
}

// slotInUse returns the slot that code with the context of t runs in, nil if
// there is none. A body has none of its own: it runs on the goroutine of the
// task that opened its scope.
func slotInUse(t *Task) *slot {
	if h := t.Inner.Load(); h != nil {
		return h.slot
	}
	if t.More != nil {
		return t.More.slot
	}
	return nil
}

// LendSlot lends the slot that t runs in, if there is one, while w waits on the
// goroutine of t. The goroutine that ends the wait calls w.Release; the wait ends
// with takeSlotBack, or not at all if t retires first. The caller may hold the lock of
// what w waits for: LendSlot calls no code of users.
func (t *Task) LendSlot(w *Waiter) {
	w.Slot = nil
	s := slotInUse(t)
	if s == nil {
		return
	}
	l := limiterOf(s)
	l.mu.Lock()
	if s.Lend(&w.loan) {
		w.Slot = s
	}
	l.unlock()
}

// lendSlotFor lends the slot of the task that w waits for, which has one, while it
// waits for f.
func (w *Waiter) lendSlotFor(f *Future) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if !f.Settled() { // else there is nothing to wait for
		w.by.LendSlot(w)
	}
}

// returnSlot is called when what w waits for has happened. w is notified when
// its task has the slot again, in turn.
func (w *Waiter) returnSlot() {
	l := limiterOf(w.Slot)
	l.mu.Lock()
	w.Slot.Return(&w.loan)
	l.unlock()
}

// takeSlotBack ends the loan of w, whose wait is over; got is what it has got so
// far. A wait that was cut short has its slot at once, even over the limit.
//
// If w stands in an answer by then, the goroutine that was given that answer
// notifies w after it has unlocked the limiter, perhaps only now. The notice belongs
// to this wait: we wait for it, so the next wait of w cannot take it for
// its own.
func (w *Waiter) takeSlotBack(got uint8) {
	if w.Slot != nil {
		w.endLoan(got)
	}
}

func (w *Waiter) endLoan(got uint8) {
	l := limiterOf(w.Slot)
	l.mu.Lock()
	granted := w.Slot.TakeBack(&w.loan)
	l.mu.Unlock()
	w.Slot = nil
	for granted && got&gotSlot == 0 {
		got |= w.Park()
	}
}

// Release tells w that what it waits for has happened. A waiter that lent its
// slot first queues to get it back, before anything new is started.
func (w *Waiter) Release() {
	switch {
	case w.done != nil:
		close(w.done)
	case w.Slot != nil:
		w.returnSlot()
	default:
		w.notify(gotSettled)
	}
}
