package tree

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
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
	// Deaf: the wait has a context that decides alone when it ends.
	Deaf bool
	Left time.Duration // until its own limit ends it; 0: it has none
	For  *Other        // of ForOthers

	w      *Waiter
	serial int64
	until  time.Duration // of a waiter
	on     *Future       // of ForFuture
}

// An Other is a wait that another package has noted.
type Other struct {
	Part any    // what it belongs to; nil if nobody says
	Text string // what the wait is for

	noted *Noted
}

// On returns whose future it is that the wait is for; nil if it is for no future.
func (w *Wait) On() *Task {
	if w.on == nil {
		return nil
	}
	return &w.on.Task
}

// MostWaits is how many waits of a task one look tells of.
const MostWaits = 32

// Waits are those of one task after another.
type Waits struct {
	All    []Wait
	others []Other // room for those of All
}

// Reserve makes room for n waits, and those of one task beside: so that nothing is made while a scope is locked.
func (a *Waits) Reserve(n int) {
	if cap(a.All)-len(a.All) < n+MostWaits {
		a.All = slices.Grow(a.All, max(n, len(a.All)/2)+MostWaits)
	}
	if cap(a.others)-len(a.others) < MostWaits {
		a.others = make([]Other, 0, 4*MostWaits) // who has the others keeps them
	}
}

// addLocked adds the waits of the task of s.
func (a *Waits) addLocked(s *Scope) {
	most := len(a.All) + MostWaits
	for n := s.noted; n != nil && len(a.All) < most; n = n.next { // first: it may wait for a future of its own inside
		a.All = append(a.All, Wait{Kind: ForOthers, For: a.other(n), serial: n.serial})
	}
	if w := s.parker.Load(); w != nil && w.busy.Load() && len(a.All) < most {
		a.waitOf(w, false)
	}
	for w := s.listeners; w != nil && len(a.All) < most; w = w.lnext {
		a.waitOf(w, w.deaf)
	}
}

// other returns what n says. There is room for that, or it is a test's.
func (a *Waits) other(n *Noted) *Other {
	a.others = append(a.others, Other{n.part, n.text, n})
	return &a.others[len(a.others)-1]
}

// waitOf adds the wait of w, if it goes on.
func (a *Waits) waitOf(w *Waiter, deaf bool) {
	serial := w.serial.Load()
	left, until := w.left()
	kind, on := ForFuture, w.waitsFor(serial)
	if on == nil {
		kind = ForTime
		if left == 0 {
			return // it is about to begin, or is over
		}
	}
	a.All = append(a.All, Wait{Kind: kind, Deaf: deaf, Left: left, w: w, serial: serial, until: until, on: on})
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
	m := waitMark{w: w.w, serial: w.serial, until: w.until}
	if w.For != nil {
		m.noted = w.For.noted
	}
	return maphash.Comparable(marks, m) | 1
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
