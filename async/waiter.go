package async

import (
	"sync"
	"time"
)

// What a waiter has got.
const (
	gotSettled uint8 = 1 << iota // what it waits for, and its slot back
	gotExpired                   // its time limit
	gotStop                      // its context is done
)

// A waiter is one goroutine that waits. It parks on a condition variable and
// not on a channel because it is reused, and channels and timers may not pass
// from one synctest bubble to another; a waiter stays with its scope.
type waiter struct {
	mu   sync.Mutex // innermost: held while no other lock is taken
	cond sync.Cond
	got  uint8

	prev, next   *waiter // on the list of a future; guarded by future.mu
	lprev, lnext *waiter // on the list of a scope; guarded by scope.mu
	timer        *time.Timer
	done         chan struct{} // closed instead of waking anybody; see doneChannel
	by           *task         // who waits; nil if nobody knows
	slot         *slot         // lent while we wait; nil if there is none
	serial       uint64        // which wait this is, for the await-cycle search
}

func newWaiter() *waiter {
	w := new(waiter)
	w.cond.L = &w.mu
	return w
}

// takeWaiter returns a waiter for a wait under t's context: the scope's idle
// one if there is one.
func takeWaiter(s *scope) *waiter {
	if s != nil {
		if w := s.parker.Swap(nil); w != nil {
			return w
		}
	}
	return newWaiter()
}

// notify adds to what w has got and wakes it.
func (w *waiter) notify(what uint8) {
	w.mu.Lock()
	w.got |= what
	w.cond.Signal()
	w.mu.Unlock()
}

// forget takes back what w has got but not yet seen.
func (w *waiter) forget(what uint8) {
	w.mu.Lock()
	w.got &^= what
	w.mu.Unlock()
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

// park blocks until w has got something.
func (w *waiter) park() uint8 {
	w.mu.Lock()
	for w.got == 0 {
		w.cond.Wait()
	}
	got := w.got
	w.mu.Unlock()
	return got
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
