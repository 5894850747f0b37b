package async

import (
	"context"
	"time"
)

// This file is how a goroutine waits for a future: the one place where Await,
// Wait and AwaitAll block.

// waitEnd is what a wait came to.
type waitEnd uint8

const (
	waitSettled waitEnd = iota
	waitExpired         // its own limit has passed
	waitStopped         // its context is done
	waitCycle           // it could never end
)

// A stay is one wait of one goroutine for one future.
type stay struct {
	f       *future
	ctx     context.Context
	timeout time.Duration
	w       *waiter
	under   *scope        // whose cancellation ends the wait; nil if ctx is not its own
	mine    bool          // w is the own waiter of under
	began   time.Duration // on our clock
	stop    func() bool   // takes w off ctx; nil if it is not on it
}

// block parks until f settles (nil), timeout has passed, or ctx is done, and
// says which it was. It changes nothing about the task.
//
// It parks in this frame, as near to the caller as can be, because every
// return after a switch of goroutines is mispredicted: measured, a frame costs
// 10 ns of the 700 that Execute and Await take.
func (f *future) block(ctx context.Context, timeout time.Duration, search bool) (end waitEnd, why error) {
	if f.settled() {
		return waitSettled, nil
	}
	s := stay{f: f, ctx: ctx, timeout: timeout}
	if end, why, over := s.begin(search); over {
		return end, why
	}
	w := s.w
	w.mu.Lock()
	for w.got == 0 {
		w.cond.Wait()
	}
	got := w.takeLocked()
	w.mu.Unlock()
	return s.end(got)
}

// begin registers the wait. It reports that it is over already, and why, if
// it is.
func (s *stay) begin(search bool) (end waitEnd, why error, over bool) {
	f := s.f
	me, own := nearest(s.ctx)
	if end, why := s.look(me, own); why != nil {
		if f.settled() { // what settled before ctx was done wins
			return waitSettled, nil, true
		}
		return end, why, true
	}
	if me != nil {
		// Made before the wait is registered: who has no inner scope waits for
		// nobody, see cycle.
		if h := me.scope(); own {
			s.under = h
		}
	}
	if search {
		if err := f.around(me); err != nil {
			if f.settled() {
				return waitSettled, nil, true
			}
			return waitCycle, err, true
		}
	}
	s.w, s.mine = takeWaiter(s.under)
	w := s.w
	w.by = me
	if !f.link(w) {
		w.recycle(s.under, s.mine, true)
		return waitSettled, nil, true
	}
	if search {
		if err := f.cycle(me); err != nil {
			f.unlink(w)
			w.recycle(s.under, s.mine, false) // somebody may still look at it
			if f.settled() {                  // with an error, perhaps, that is kept for us
				return waitSettled, nil, true
			}
			return waitCycle, err, true
		}
	}
	if s.timeout > 0 {
		s.began = w.arm(s.timeout)
	}
	s.stop = w.heed(s.ctx, s.under, s.mine)
	w.lendSlotFor(f)
	return waitSettled, nil, false
}

// look returns why a wait is over before it begins, nil if it is not.
func (s *stay) look(me *task, own bool) (waitEnd, error) {
	if s.timeout < 0 {
		return waitExpired, &TimeoutError{Task: s.f.t.name(), Limit: s.timeout, awaited: true}
	}
	if own {
		if sg := me.stopped(); sg != nil {
			return waitStopped, sg.told()
		}
	} else if err := s.ctx.Err(); err != nil {
		return waitStopped, stopped(err, context.Cause(s.ctx))
	}
	return waitSettled, nil
}

// end takes the waiter off everything and returns what the wait came to.
func (s *stay) end(got uint8) (waitEnd, error) {
	f, w := s.f, s.w
	var waited time.Duration
	if got&gotExpired != 0 && got&gotSettled == 0 {
		// Look again a nanosecond later: in a synctest bubble that is when all
		// that was due at the same instant has been done, so a result wins a tie.
		waited = clock() - s.began
		w.arm(1)
		got |= w.park()
	}

	clean := true
	if s.stop != nil && !s.stop() {
		clean = false
	}
	if got&gotSettled == 0 && !f.unlink(w) { // else settling f is done with w
		clean = false
	}
	w.takeSlotBack(got)
	w.recycle(s.under, s.mine, clean)
	switch {
	case f.settled():
		return waitSettled, nil
	case got&gotExpired != 0:
		return waitExpired, &TimeoutError{Task: f.t.name(), Limit: s.timeout, Waited: waited, awaited: true}
	default:
		return waitStopped, stopped(s.ctx.Err(), context.Cause(s.ctx))
	}
}

// sleep parks for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	me, own := nearest(ctx)
	var under *scope
	if own {
		under = me.scope()
	}
	w, mine := takeWaiter(under)
	w.by = me
	w.arm(d)
	stop := w.heed(ctx, under, mine)
	if me != nil {
		me.lendSlot(w)
	}
	got := w.park()
	if got == gotExpired && w.slot != nil {
		w.returnSlot() // in turn, unlike a wait that was cut short
		got |= w.park()
	}
	clean := stop == nil || stop()
	w.takeSlotBack(got)
	w.recycle(under, mine, clean)
	if got&gotExpired != 0 {
		return nil
	}
	return stopped(ctx.Err(), context.Cause(ctx))
}

// heed has w notified when ctx is done and returns what undoes that, nil if
// there is nothing to undo. A scope's own waiter is notified of every
// cancellation of the scope, which is stored before: either that finds us
// waiting or we find the signal here.
func (w *waiter) heed(ctx context.Context, under *scope, mine bool) (stop func() bool) {
	switch {
	case mine:
		if under.sig.Load() != nil {
			w.notify(gotStop)
		}
	case under != nil:
		if under.listen(w) {
			return func() bool { under.unlisten(w); return true }
		}
		w.notify(gotStop)
	case ctx.Done() != nil:
		return context.AfterFunc(ctx, func() { w.notify(gotStop) })
	}
	return nil
}

// link puts w on f's list; false if f has settled.
func (f *future) link(w *waiter) bool {
	f.mu.Lock()
	open := !f.settled()
	if open {
		f.linkLocked(w)
	}
	f.mu.Unlock()
	return open
}

func (f *future) linkLocked(w *waiter) {
	w.serial++
	w.taken = false
	if first := f.waiters; first != nil && first.done != nil { // stays first, see doneChannel
		w.prev, w.next, first.next = first, first.next, w
		if w.next != nil {
			w.next.prev = w
		}
		return
	}
	if f.waiters != nil {
		f.waiters.prev = w
	}
	w.next, f.waiters = f.waiters, w
}

// unlink takes w off f's list, unless settling f has. It reports whether
// nobody will notify w for f any more.
func (f *future) unlink(w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	return true
}
