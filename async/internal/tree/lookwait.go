package tree

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"time"
	"unsafe"
)

// This file is what a look tells of waits: those for futures, those for time, and those that other packages have noted.

// A WaitKind is what a task waits for.
type WaitKind uint8

// The kinds of waits.
const (
	ForFuture WaitKind = iota // that a future settles
	ForTime                   // that time passes
	ForOthers                 // for what another package knows
)

// A Wait is one wait with the context of a task.
type Wait struct {
	Kind WaitKind
	On   *Task         // of ForFuture: whose future it is
	Part any           // of ForOthers: what it belongs to; nil if nobody says
	Text string        // of ForOthers: what the wait is for
	Left time.Duration // until its own limit ends it; 0: it has none
	// Deaf: the wait has a context that decides alone when it ends.
	Deaf bool

	w      *Waiter
	noted  *Noted // of ForOthers
	serial int64
	until  time.Duration // of a waiter
	on     *Future
}

// MostWaits is how many waits of a task one look tells of.
const MostWaits = 32

// waitsLocked adds the waits of the task of s to all, and returns how many there are beside [MostWaits] of them.
func waitsLocked(s *Scope, all []Wait) (_ []Wait, more int) {
	add := func(w Wait) {
		if len(all) == MostWaits {
			more++
			return
		}
		all = append(all, w)
	}
	for n := s.noted; n != nil; n = n.next { // first: it may wait for a future of its own inside
		add(Wait{Kind: ForOthers, Part: n.part, Text: n.text, noted: n, serial: n.serial})
	}
	if w := s.parker.Load(); w != nil && w.busy.Load() {
		if wait, ok := waitOf(w, false); ok {
			add(wait)
		}
	}
	for w := s.listeners; w != nil; w = w.lnext {
		if wait, ok := waitOf(w, w.deaf); ok {
			add(wait)
		}
	}
	return all, more
}

// waitOf returns the wait of w, if it goes on.
func waitOf(w *Waiter, deaf bool) (wait Wait, ok bool) {
	serial := w.serial.Load()
	left, until := w.left()
	wait = Wait{Kind: ForTime, Left: left, Deaf: deaf, w: w, serial: serial, until: until}
	if on := w.waitsFor(serial); on != nil {
		wait.Kind, wait.On, wait.on = ForFuture, &on.Task, on
		return wait, true
	}
	return wait, wait.Left > 0 // else it is about to begin, or is over
}

// left returns how long it takes until the limit of w ends its wait, 0 if it has none, or not on the
// clock of the caller; and when that is, on its own clock.
func (w *Waiter) left() (left, until time.Duration) {
	w.mu.Lock()
	until, bubble := w.until, w.bubble
	w.mu.Unlock()
	if until == 0 {
		return 0, 0
	}
	now := Clock()
	if bubble != inBubble(now) {
		return 0, until
	}
	return max(until-now, 1), until
}

// Lasts reports whether the wait, which is one for a future, goes on: then it has since it was seen.
func (w *Wait) Lasts() bool { return w.w.waitsFor(w.serial) == w.on }

// Mark returns what tells the wait from other waits of the task: from those before it by its serial
// number or its limit, from those beside it by where it is kept. It is never 0, and tells nothing else.
func (w *Wait) Mark() uint64 {
	return maphash.Comparable(marks, waitMark{w.w, w.noted, w.serial, w.until}) | 1
}

type waitMark struct {
	w      *Waiter
	noted  *Noted
	serial int64
	until  time.Duration
}

var marks = maphash.MakeSeed()

// InTraceback returns what a traceback shows on top of the goroutine that waits, and of no other while
// the wait lasts: that it is parked on the condition variable of the wait.
func (w *Wait) InTraceback() string {
	return fmt.Sprintf("sync.runtime_notifyListWait(0x%x, ", uintptr(unsafe.Pointer(&w.w.cond))+parkedAt)
}

// parkedAt is where in a condition variable the list of those stands that are parked on it.
var parkedAt = func() uintptr {
	list, _ := reflect.TypeFor[Cond]().FieldByName("notify")
	return list.Offset // 0 if there is none: then nothing is found
}()

// Begin notes that the task t waits for text, of part, which may be nil. It comes before the wait.
func (n *Noted) Begin(t *Task, part any, text string) {
	s := t.Scope()
	if s.isShared() {
		return
	}
	n.s, n.part, n.text, n.serial = s, part, text, n.serial+1
	if hears(t, eventWaited) {
		n.began = Clock()
	}
	s.Mu.Lock()
	if n.next = s.noted; n.next != nil {
		n.next.prev = n
	}
	s.noted = n
	s.Mu.Unlock()
}

// End notes that the wait is over. It does nothing without a Begin before.
func (n *Noted) End() {
	s := n.s
	if s == nil {
		return
	}
	s.Mu.Lock()
	if n.next != nil {
		n.next.prev = n.prev
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		s.noted = n.next
	}
	s.Mu.Unlock()
	if n.began != 0 {
		tellWait(s.Task, nil, n.part, n.text, n.began)
	}
	*n = Noted{serial: n.serial}
}
