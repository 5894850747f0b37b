package async

import (
	"sync"
	"sync/atomic"
	"time"
)

// What a waiter has got.
const (
	gotSettled uint8 = 1 << iota // what it waits for, and its slot back
	gotExpired                   // its time limit
	gotStop                      // its context is done
)

// A waiter is one goroutine that waits. A scope makes one and uses it for its
// waits one after another; a wait beside another, or outside all scopes, takes
// one from a pool. It parks on a condition variable and not on a channel
// because channels may not pass from one synctest bubble to another, nor may
// timers: those stay with the waiter of a scope and are not pooled.
type waiter struct {
	mu   sync.Mutex // innermost: held while no other lock is taken
	cond sync.Cond
	got  uint8       // gotSettled and so on; guarded by mu
	busy atomic.Bool // only for a scope's own waiter: a wait uses it

	prev, next   *waiter // on the list of a future; guarded by future.mu
	lprev, lnext *waiter // on the list of a scope; guarded by scope.mu
	taken        bool    // off the future's list, to be notified without the lock; guarded by future.mu
	timer        *time.Timer
	done         chan struct{} // closed instead of waking anybody; see doneChannel
	by           *task         // who waits; nil if nobody knows
	slot         *slot         // lent while we wait; nil if there is none; guarded by future.mu or scope.mu
	serial       uint64        // which wait this is, for the await-cycle search
}

var waiters = sync.Pool{New: func() any { return newWaiter() }}

func newWaiter() *waiter {
	w := new(waiter)
	w.cond.L = &w.mu
	return w
}

// takeWaiter returns a waiter for a wait under the context of s, which may be
// nil, and whether it is the scope's own.
func takeWaiter(s *scope) (w *waiter, own bool) {
	if s != nil {
		w = s.parker.Load()
		if w != nil && w.busy.CompareAndSwap(false, true) {
			return w, true
		}
		if w == nil {
			w = newWaiter()
			w.busy.Store(true)
			if s.parker.CompareAndSwap(nil, w) {
				return w, true
			}
		}
	}
	return waiters.Get().(*waiter), false
}

// notify adds to what w has got and wakes it. A notify for the cancellation of
// a scope may come by when the scope's waiter is at its next wait already, for
// which it is as true.
func (w *waiter) notify(what uint8) {
	w.mu.Lock()
	w.got |= what
	w.cond.Signal()
	w.mu.Unlock()
}

// park blocks until w has got something and takes it.
func (w *waiter) park() (got uint8) {
	w.mu.Lock()
	for w.got == 0 {
		w.cond.Wait()
	}
	got, w.got = w.got, 0
	w.mu.Unlock()
	return got
}

// recycle makes w ready for the next wait, under s if it is that scope's own,
// or drops it if it is not clean: if anybody may notify it for the wait that
// is over.
func (w *waiter) recycle(s *scope, own, clean bool) {
	if !clean {
		if own {
			s.parker.CompareAndSwap(w, nil)
		}
		return
	}
	w.by, w.taken, w.prev, w.next = nil, false, nil, nil
	if own {
		w.busy.Store(false)
		return
	}
	w.timer, w.got = nil, 0 // nobody else knows w now
	waiters.Put(w)
}

// settled tells w that what it waits for has happened. A waiter that lent its
// slot first queues to get it back, before anything new is started.
func (w *waiter) settled() {
	switch {
	case w.done != nil:
		close(w.done)
	case w.slot != nil:
		w.slot.comeBack(w)
	default:
		w.notify(gotSettled)
	}
}

// arm has w expire in d.
func (w *waiter) arm(d time.Duration) {
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.expire)
	} else {
		w.timer.Reset(d)
	}
}

func (w *waiter) expire() { w.notify(gotExpired) }

// listen has w told when s is cancelled; false if it is already.
func (s *scope) listen(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sig.Load() != nil {
		return false
	}
	if s.listeners != nil {
		s.listeners.lprev = w
	}
	w.lnext, s.listeners = s.listeners, w
	return true
}

// unlisten undoes listen. After it, s will not notify w.
func (s *scope) unlisten(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
