package async

import (
	"context"
	"time"
)

// This file is how a goroutine waits for a future: the one place where Await,
// Wait and AwaitAll block.

// look returns why a wait is over before it begins, nil if it is not.
func (f *future) look(ctx context.Context, timeout time.Duration) error {
	if timeout < 0 {
		return &TimeoutError{Task: f.t.name(), Limit: timeout}
	}
	if err := ctx.Err(); err != nil {
		return stopped(err, context.Cause(ctx))
	}
	return nil
}

// block parks until f settles (nil), timeout has passed, or ctx is done. It
// changes nothing about the task.
func (f *future) block(ctx context.Context, timeout time.Duration, search bool) error {
	if f.settled() {
		return nil
	}
	me, own := nearest(ctx)
	if why := f.look(ctx, timeout); why != nil {
		if f.settled() { // what settled before ctx was done wins
			return nil
		}
		return why
	}
	var under *scope // whose cancellation ends the wait
	if me != nil {
		// Made before the wait is registered: who has no scope half waits for
		// nobody, see cycle.
		if h := me.scope(); own {
			under = h
		}
	}
	w, mine := takeWaiter(under)
	w.by = me
	if !f.link(w) {
		w.recycle(under, mine, true)
		return nil
	}
	if search {
		if err := f.cycle(me); err != nil {
			f.unlink(w)
			w.recycle(under, mine, false) // somebody may still look at it
			return err
		}
	}
	return f.parkOn(ctx, under, w, mine, timeout)
}

// parkOn parks w, which is on f's list, and takes it off everything again.
// mine says that w is the own waiter of the scope under.
func (f *future) parkOn(ctx context.Context, under *scope, w *waiter, mine bool, timeout time.Duration) error {
	began := time.Time{}
	if timeout > 0 {
		began = time.Now()
		w.arm(timeout)
	}
	stop := w.heed(ctx, under, mine)
	w.lend(f)
	got := w.park()
	var waited time.Duration
	if got == gotExpired {
		// Look again a nanosecond later: in a synctest bubble that is when all
		// that was due at the same instant has been done, so a result wins a tie.
		waited = time.Since(began)
		w.arm(1)
		got |= w.park()
	}

	clean := got&gotExpired == 0 && (timeout <= 0 || w.timer.Stop())
	if stop != nil && !stop() {
		clean = false
	}
	if got&gotSettled == 0 && !f.unlink(w) { // else settling f is done with w
		clean = false
	}
	w.resume()
	w.recycle(under, mine, clean)
	switch {
	case f.settled():
		return nil
	case got&gotExpired != 0:
		return &TimeoutError{Task: f.t.name(), Limit: timeout, Waited: waited}
	default:
		return stopped(ctx.Err(), context.Cause(ctx))
	}
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
	defer f.mu.Unlock()
	if f.settled() {
		return false
	}
	f.linkLocked(w)
	return true
}

func (f *future) linkLocked(w *waiter) {
	w.serial++
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
