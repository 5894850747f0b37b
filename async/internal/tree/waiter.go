package tree

import (
	"math"
	"time"
)

// This file is about waiters: how a goroutine parks and is woken, and the lists that a waiter
// is on, of a future and of a scope.

var waiters = Pool{New: func() any { return NewWaiter() }}

// NewWaiter returns a waiter that nobody uses.
func NewWaiter() *Waiter {
	w := new(Waiter)
	w.cond.L = &w.mu
	w.loan.Owner = w
	return w
}

// takeWaiter returns a waiter for a wait under the context of s, which may be
// nil, and whether it is the scope's own.
func takeWaiter(s *Scope) (w *Waiter, isParker bool) {
	if s != nil {
		w = s.parker.Load()
		if w != nil && w.busy.CompareAndSwap(false, true) {
			return w, true
		}
		if w == nil {
			w = NewWaiter()
			w.busy.Store(true)
			if s.parker.CompareAndSwap(nil, w) {
				return w, true
			}
		}
	}
	return waiters.Get().(*Waiter), false
}

// notify adds to what w has got and wakes it. A notify for the cancellation of
// a scope may come by when the scope's waiter is at its next wait already, for
// which it is as true.
func (w *Waiter) notify(what uint8) {
	w.mu.Lock()
	w.got |= what
	w.cond.Signal()
	w.mu.Unlock()
}

// Park blocks until w has got something and takes it.
func (w *Waiter) Park() (got uint8) {
	w.mu.Lock()
	for w.got == 0 {
		w.cond.Wait()
	}
	got = w.takeLocked()
	w.mu.Unlock()
	return got
}

// takeLocked takes what w has got. The wait is over, and so is its limit.
func (w *Waiter) takeLocked() (got uint8) {
	got, w.got, w.until = w.got, 0, 0
	w.bubbled = w.bubble && w.timer != nil
	return got
}

// recycle makes w ready for the next wait, under s if it is that scope's own,
// or drops it if it is not clean: if anybody may notify it for the wait that
// is over.
func (w *Waiter) recycle(s *Scope, isParker, clean bool) {
	if !isParker || !clean || s.Why.Load() != nil || w.bubbled { // see Seal and arm
		clean = w.disarm() && clean
	}
	if !clean {
		if isParker {
			s.parker.CompareAndSwap(w, nil)
		}
		return
	}
	w.on.Store(nil) // or the future would be kept until the next wait
	if isParker {
		w.busy.Store(false)
		return
	}
	w.by, w.got = nil, 0 // nobody else knows w now
	waiters.Put(w)
}

// arm has w expire in d and returns the time.
//
// A timer that was armed for an earlier wait is left to run if it is not too
// late for this one: when it fires it is set again for what remains. Measured,
// a wait with a limit costs 40 ns more than one without, not 170. Not so in a
// bubble, whose timers nobody outside may touch: there every wait has its own.
func (w *Waiter) arm(d time.Duration) (now time.Duration) {
	now = Clock()
	w.mu.Lock()
	w.until = now + d
	if w.until < now {
		w.until = math.MaxInt64
	}
	if bubble := inBubble(now); bubble != w.bubble {
		w.timer, w.armed, w.bubble = nil, 0, bubble
	}
	if w.armed == 0 || w.armed > w.until {
		w.setLocked(d)
	}
	w.mu.Unlock()
	return now
}

// setLocked has the timer fire in d, which is when the wait expires.
func (w *Waiter) setLocked(d time.Duration) {
	w.armed = w.until
	if w.timer != nil {
		w.timer.Reset(d)
		return
	}
	w.turn++
	turn := w.turn
	w.timer = time.AfterFunc(d, func() { w.expire(turn) })
}

// expire is called by a timer.
func (w *Waiter) expire(turn int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn != w.turn {
		return
	}
	w.armed = 0
	if w.until == 0 {
		return // nobody waits, or without a limit
	}
	if left := w.until - Clock(); left > 0 {
		w.setLocked(left)
		return
	}
	w.got |= gotExpired
	w.cond.Signal()
}

// disarm stops the timer and forgets it. It reports false if that has fired
// and may still come by.
func (w *Waiter) disarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	quiet := w.timer == nil || w.timer.Stop() || w.armed == 0
	w.timer, w.until, w.armed = nil, 0, 0
	w.turn++
	return quiet
}

// listen has w told when s is cancelled; false if it is already.
func (s *Scope) listen(w *Waiter) bool {
	s.enlist(w, false)
	if s.Why.Load() != nil {
		s.delist(w)
		return false
	}
	return true
}

// enlist puts w, which waits for the task of s but is not its own waiter, on the
// list of s: there the search for await cycles finds it. Unless it is deaf it is
// told there when s is cancelled.
func (s *Scope) enlist(w *Waiter, deaf bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	w.deaf = deaf
	if s.listeners != nil {
		s.listeners.lprev = w
	}
	w.lnext, s.listeners = s.listeners, w
}

// delist undoes enlist. After it, s will not notify w.
func (s *Scope) delist(w *Waiter) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if w.lnext != nil {
		w.lnext.lprev = w.lprev
	}
	if w.lprev != nil {
		w.lprev.lnext = w.lnext
	} else {
		s.listeners = w.lnext
	}
	w.lprev, w.lnext = nil, nil
}

// addWaiter puts w on f's list; false if f has settled.
func (f *Future) addWaiter(w *Waiter) bool {
	f.Mu.Lock()
	open := !f.Settled()
	if open {
		f.addWaiterLocked(w)
	}
	f.Mu.Unlock()
	return open
}

func (f *Future) addWaiterLocked(w *Waiter) {
	w.taken = false
	w.on.Store(f)
	w.serial.Add(1)
	switch first := f.waiters; {
	case first == nil: // most often
		f.waiters = w
	case first.done != nil: // stays first, see DoneChannel
		w.prev, w.next, first.next = first, first.next, w
		if w.next != nil {
			w.next.prev = w
		}
	default:
		first.prev, w.next, f.waiters = w, first, w
	}
}

// removeWaiter takes w off f's list, unless settling f has. It reports whether
// nobody will notify w for f any more.
func (f *Future) removeWaiter(w *Waiter) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if w.taken {
		return false
	}
	if w.prev == nil && f.waiters != w {
		return true
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		f.waiters = w.next
	}
	w.prev, w.next = nil, nil
	w.serial.Add(1)
	return true
}

// takeWaitersLocked empties the list. It returns those that are to be notified
// when the task has left its owner. Those that have lent a slot are told at once:
// so the slot of f's task, which is given up in between, goes to one of them and
// not to a task that has not begun. Channels of Done are closed at once, too.
func (f *Future) takeWaitersLocked() (waiters *Waiter) {
	for w := f.waiters; w != nil; {
		next := w.next
		w.prev, w.next = nil, nil
		w.serial.Add(1) // it is off the list
		if w.done == nil && w.Slot == nil {
			w.taken, w.next = true, waiters
			waiters = w
		} else {
			w.Release()
		}
		w = next
	}
	f.waiters = nil
	return waiters
}

// AwaitedLocked reports whether anybody is parked and will be given the outcome. A
// waiter with a channel stands for Done, which gives nothing to anybody.
func (f *Future) AwaitedLocked() bool {
	if f.Wanted.Load() > 0 {
		return true
	}
	for w := f.waiters; w != nil; w = w.next {
		if w.done == nil {
			return true
		}
	}
	return false
}

// Unwant notes that an AwaitAll will look no more and reports whether f has
// settled. The settling goroutine reads Wanted and settles in one critical
// section. Either that comes before ours, and has counted this AwaitAll as given
// the outcome: then we see f settled. Or it comes after, and does not count it.
func (f *Future) Unwant() bool {
	if f.Settled() {
		return true
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Wanted.Add(-1)
	return f.Settled()
}

// DoneChannel returns a channel that is closed when f settles: that of a
// waiter that nobody is parked on, which is the first on the list. It is made by
// the first call; every call before f is done returns the same.
func (f *Future) DoneChannel() <-chan struct{} {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if w := f.waiters; w != nil && w.done != nil {
		return w.done
	}
	w := new(Waiter)
	w.done = make(chan struct{})
	if f.Settled() {
		close(w.done)
	} else {
		f.addWaiterLocked(w)
	}
	return w.done
}
