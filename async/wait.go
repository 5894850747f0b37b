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
		return why
	}
	var under *scope // whose cancellation ends the wait
	if own {
		under = me.scope()
	}
	w := takeWaiter(under)
	w.by = me
	if !f.link(w) {
		w.recycle(under)
		return nil
	}
	if search {
		if err := f.cycle(me); err != nil {
			f.unlink(w)
			return err // w may still be looked at: it is not used again
		}
	}
	return f.parkOn(ctx, under, w, timeout)
}

// parkOn parks w, which is on f's list, and takes it off everything again.
func (f *future) parkOn(ctx context.Context, under *scope, w *waiter, timeout time.Duration) error {
	began := time.Time{}
	if timeout > 0 {
		began = time.Now()
		w.arm(timeout)
	}
	listening := false
	var stop func() bool
	switch {
	case under != nil:
		if listening = under.listen(w); !listening {
			w.notify(gotStop)
		}
	case ctx.Done() != nil:
		stop = context.AfterFunc(ctx, func() { w.notify(gotStop) })
	}
	w.lend(f)
	got := w.park()

	clean := timeout <= 0 || w.timer.Stop()
	if listening {
		under.unlisten(w)
	}
	if stop != nil && !stop() {
		clean = false
	}
	if got&gotSettled == 0 { // else settling f has taken w off its list
		f.unlink(w)
	}
	w.resume()
	if clean {
		w.recycle(under)
	}
	switch {
	case f.settled():
		return nil
	case got&gotExpired != 0:
		return &TimeoutError{Task: f.t.name(), Limit: timeout, Waited: time.Since(began)}
	default:
		return stopped(ctx.Err(), context.Cause(ctx))
	}
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

// unlink takes w off f's list, unless settling f has. After it, f will not
// notify w.
func (f *future) unlink(w *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.prev == nil && f.waiters != w {
		return
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
}

// recycle keeps w for the next wait under s. Nobody can notify it any more.
func (w *waiter) recycle(s *scope) {
	if s == nil {
		return
	}
	w.got, w.by = 0, nil
	s.parker.Store(w)
}
