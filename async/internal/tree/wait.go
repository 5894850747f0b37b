package tree

import (
	"context"
	"time"
)

// This file is how a goroutine waits for a future: the one place where waits
// for futures and groups block; and how Sleep does.

// waitEnd is what a wait came to.
type waitEnd uint8

const (
	waitSettled waitEnd = iota
	waitExpired         // its own limit has passed
	WaitStopped         // its context is done
	waitCycle           // it could never end
)

// Block parks until f settles (nil), timeout has passed, or ctx is done, and
// says which it was. It changes nothing about the task.
//
// It parks in this frame, as near to the caller as can be, because every
// return after a switch of goroutines is mispredicted: measured, a frame costs
// 10 ns of the 700 that Execute and Await take.
func (f *Future) Block(ctx context.Context, timeout time.Duration, search bool) (end waitEnd, why error) {
	if ctx == nil {
		Nearest(ctx) // panics, and says why: not only while f has not settled
	}
	if f.Settled() {
		return waitSettled, nil
	}
	s := oneWait{f: f, ctx: ctx, timeout: timeout}
	if end, why, over := s.prepare(search); over {
		return end, why
	}
	w := s.w
	if timeout > 0 { // not in prepare: measured, the stack of a waiting task would be twice as large
		s.began = w.arm(timeout)
	}
	w.mu.Lock()
	for w.got == 0 {
		w.cond.Wait()
	}
	got := w.takeLocked()
	w.mu.Unlock()
	return s.end(got)
}

// prepare registers the wait with all that may end it. It reports that the wait is
// over already, and why, if it is.
//
// It registers with the future first and looks for a cycle then: of two waits that
// close a ring together, each registers before it looks, so one sees the other.
func (s *oneWait) prepare(search bool) (end waitEnd, why error, over bool) {
	f := s.f
	me, derived := Nearest(s.ctx)
	taskCtx := me != nil && derived == nil
	if end, why := s.overAlready(me, taskCtx); why != nil {
		return s.unlessSettled(end, why)
	}
	if search && f.mayLeadTo(me) {
		if err := f.SelfCycle(me); err != nil {
			return s.unlessSettled(waitCycle, err)
		}
	}
	s.register(me, taskCtx)
	if search && f.Task.More != nil {
		if err := s.tellExecutor(); err != nil {
			s.unregister(true)
			return s.unlessSettled(waitCycle, err)
		}
	}
	if !f.addWaiter(s.w) {
		s.unregister(true)
		return waitSettled, nil, true
	}
	if search && f.mayLeadTo(me) { // it may have waited for something since
		if err := f.cycle(me, s.w); err != nil {
			s.unregister(false) // somebody may still look at it
			return s.unlessSettled(waitCycle, err)
		}
	}
	s.hear(me)
	s.stop = s.w.heed(s.ctx, s.under)
	if me != nil && slotInUse(me) != nil {
		s.w.lendSlotFor(f)
	}
	return waitSettled, nil, false
}

// unlessSettled returns that a wait is over before it has begun. A future that settled before that
// was found wins, perhaps with an error that is kept for us.
func (s *oneWait) unlessSettled(end waitEnd, why error) (waitEnd, error, bool) {
	if s.f.Settled() {
		return waitSettled, nil, true
	}
	return end, why, true
}

// register takes a waiter and has it stand with the task that waits, which is
// nil if nobody knows. The inner scope is made before the future has the waiter:
// a task without one waits for nobody, see cycle.
func (s *oneWait) register(me *Task, taskCtx bool) {
	var at *Scope
	if me != nil {
		at = me.Scope()
	}
	if taskCtx {
		s.under = at
	}
	s.w, s.isParker = takeWaiter(s.under)
	s.w.by = me
	if at != nil && !at.isShared() && !s.isParker {
		s.listed = at
		at.enlist(s.w, !taskCtx)
	}
}

// unregister undoes register. The waiter is used again if it is clean: if nobody
// may notify it any more.
func (s *oneWait) unregister(clean bool) {
	if s.over != nil {
		s.over()
	}
	if s.listed != nil {
		s.listed.delist(s.w)
	}
	s.w.recycle(s.under, s.isParker, clean)
}

// overAlready returns why a wait is over before it begins, nil if it is not.
func (s *oneWait) overAlready(me *Task, taskCtx bool) (waitEnd, error) {
	if s.timeout < 0 {
		return waitExpired, s.f.expired(s.timeout, 0)
	}
	if taskCtx {
		if stop := me.Stopped(); stop != nil {
			return WaitStopped, stop.AsError()
		}
	} else if stop := StopOf(s.ctx); stop != nil {
		return WaitStopped, stop.AsError()
	}
	return waitSettled, nil
}

// end takes the waiter off everything and returns what the wait came to.
func (s *oneWait) end(got uint8) (waitEnd, error) {
	f, w := s.f, s.w
	var waited time.Duration
	if got&gotExpired != 0 && got&gotSettled == 0 {
		// Look again a nanosecond later: in a synctest bubble that is when all
		// that was due at the same instant has been done, so a result wins a tie.
		waited = Clock() - s.began
		w.arm(1)
		got |= w.Park()
	}

	clean := true
	if s.stop != nil && !s.stop() {
		clean = false
	}
	if got&gotSettled == 0 && !f.removeWaiter(w) { // else settling f is done with w
		clean = false
	}
	w.takeSlotBack(got)
	s.unregister(clean)
	if s.heard {
		me, _ := Nearest(s.ctx)
		tellWait(me, &f.Task, nil, "", s.began)
	}
	switch {
	case f.Settled():
		return waitSettled, nil
	case got&gotExpired != 0:
		return waitExpired, f.expired(s.timeout, waited)
	default:
		return WaitStopped, StopOf(s.ctx).AsError()
	}
}

// Sleep parks for d, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	me, derived := Nearest(ctx)
	var s oneWait
	s.register(me, me != nil && derived == nil)
	w := s.w
	s.hear(me)
	w.arm(d)
	stop := w.heed(ctx, s.under)
	if me != nil {
		me.LendSlot(w)
	}
	got := w.Park()
	if got == gotExpired && w.Slot != nil {
		w.returnSlot() // in turn, unlike a wait that was cut short
		got |= w.Park()
	}
	clean := stop == nil || stop()
	w.takeSlotBack(got)
	s.unregister(clean)
	if s.heard {
		tellWait(me, nil, nil, "", s.began)
	}
	if got&gotExpired != 0 {
		return nil
	}
	return StopOf(ctx).AsError()
}

// heed has w notified when ctx is done and returns what undoes that, nil if
// there is nothing to undo. The waiters that stand with a scope, under, are
// notified of every cancellation of it, which is stored before: either that
// finds us waiting or we find it here.
func (w *Waiter) heed(ctx context.Context, under *Scope) (stop func() bool) {
	switch {
	case under != nil:
		if under.Why.Load() != nil {
			w.notify(gotStop)
		}
	case ctx.Done() != nil:
		return context.AfterFunc(ctx, func() { w.notify(gotStop) })
	}
	return nil
}

// expired returns the error of an Await of f whose limit has passed.
func (f *Future) expired(limit, waited time.Duration) error {
	return Codec.TimeoutError(f.Task.Name(), limit, waited, true)
}
