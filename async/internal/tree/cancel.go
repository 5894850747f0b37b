package tree

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file cancels scopes and tasks.
//
// A cancellation starts at one scope, because that failed, because somebody
// asked for it, or because the ctx that it was started with is done. From
// there it walks down the tree: to everything whose context is a child of that
// scope's own. Only what has an inner scope is walked to; a task without one
// asks its owner when it is asked. What was started with a ctx of its own is
// left out: that ctx is done by itself if it is derived from ours, and then
// starts a walk at that task.
//
// Each step locks one scope, notes the cancellation, and returns what follows
// from it. That is done after the lock was released.

// A toCancel is a task that is to be cancelled because its owner was, with sg.
type toCancel struct {
	t  *Task
	sg *StopError
}

// Cancel cancels s with sg and all that is cancelled with it. It wakes the waits
// under these contexts, cancels their standard contexts, starts abort hooks and
// withdraws tasks that are queued. It reports whether s is cancelled for sg, and
// was not before. On an ended scope it does nothing.
//
// When cancel returns true, Err of everything below is not nil. A second
// goroutine may see a scope cancelled a moment before what is below it, as in
// package context.
//
// A list and not recursion keeps the stack small: a race is often decided on a
// goroutine that is about to end, and growing its stack costs more than the rest
// of a cancellation.
func (s *Scope) Cancel(sg *StopError) (first bool) {
	if before := s.stopped(); before != nil {
		sg = before // perhaps by the ctx it was started with, of which nobody has told us yet
	} else {
		first = true
	}
	var few [4]toCancel
	counts, below := cancelAlone(s, sg, few[:0])
	for n := len(below) - 1; n >= 0; n = len(below) - 1 {
		c := below[n]
		_, below = cancelWithOwner(c.t, c.sg, below[:n])
	}
	return first && counts
}

// cancelWithOwner cancels t alone because its owner was cancelled with sg. A
// task that queues has no inner scope as a rule: it is skipped.
func cancelWithOwner(t *Task, sg *StopError, below []toCancel) (bool, []toCancel) {
	if t.Kind == KindPromise {
		t.Scope() // by which it is settled
	}
	if s := t.Inner.Load(); s != nil {
		return cancelAlone(s, sg, below)
	}
	t.skipIfQueued(sg)
	return false, below
}

// cancelAlone cancels s but nothing below it. It adds to below what is to be
// cancelled next, and reports whether s was cancelled now and for sg.
func cancelAlone(s *Scope, sg *StopError, below []toCancel) (bool, []toCancel) {
	counts, first := lockToCancel(s, sg)
	if counts == nil {
		return first, below
	}
	todo, below := cancelLocked(s, counts, below)
	s.Mu.Unlock()
	todo.do(s, counts)
	return first, below
}

// aftermath is what follows from the cancellation of one scope.
type aftermath struct {
	onCancel func() // what its task does about it; nil: nothing
	queued   bool   // its task has not begun
}

// cancelLocked notes that s is cancelled and returns what follows from it. Until
// s.Mu is unlocked no other cancellation can come between. The note comes
// before the look at the children: see makeScope.
func cancelLocked(s *Scope, sg *StopError, below []toCancel) (aftermath, []toCancel) {
	s.cancelled = true
	notifyLocked(s)
	for p := s.promises; p != nil; p = p.next {
		below = addToCancel(p, sg, below)
	}
	for c := s.children; c != nil; c = c.next { // the last one first, to be taken off last
		below = addToCancel(c, sg, below)
	}
	if s.opts != nil && s.opts.impatient != nil {
		s.opts.impatient.cancelledLocked(s, sg)
	}
	then := aftermath{queued: s.Task.State.Load() == StateQueued}
	if m := s.Task.More; m != nil && m.OnCancel != nil {
		then.onCancel = m.OnCancel(s)
	}
	return then, below
}

// addToCancel adds t to below if the cancellation of its owner, with sg, is to
// walk to it.
func addToCancel(t *Task, sg *StopError, below []toCancel) []toCancel {
	if t.cancelledWithOwner() && (t.Inner.Load() != nil || t.mayQueue() || t.Kind == KindPromise) {
		below = append(below, toCancel{t, sg})
	}
	return below
}

// do is called after s, which is cancelled with sg, was unlocked.
func (a aftermath) do(s *Scope, sg *StopError) {
	if a.onCancel != nil {
		a.onCancel()
	}
	if a.queued {
		s.Task.skipIfQueued(sg)
	}
}

// lockToCancel locks s.Mu and returns why s is cancelled: for sg, unless s has
// said something else before. It returns nil, and s.Mu is not locked, if s has
// ended or its cancellation was passed on already. first reports whether sg is
// what s is cancelled for.
//
// If s has a standard context that one has been cancelled by then, by us or by
// what it is a child of. It wakes what waits for it, so s may have ended before
// we have the lock again, although we were first.
func lockToCancel(s *Scope, sg *StopError) (counts *StopError, first bool) {
	for {
		s.Mu.Lock()
		if s.cancelled || s.Ended {
			s.Mu.Unlock()
			return nil, first
		}
		std, noted := s.std.Load(), s.Why.Load()
		switch {
		case std == nil:
			first = s.Why.CompareAndSwap(nil, sg)
			return s.Why.Load(), first
		case noted != nil && std.Err() != nil:
			return noted, first
		}
		s.Mu.Unlock()
		// Both take locks of package context and may ask contexts of users.
		if std.Err() == nil {
			if noted == nil {
				noted = sg
			}
			std.cancel(noted.Cause)
			first = noted == sg && tally.Same(context.Cause(std.Context), sg.Cause)
		}
		s.stopped() // notes why
		first = first && credit(s)
	}
}

// credit reports whether the caller is the first to ask: of those who have cancelled
// the standard context of s at once, with the same cause, one was first.
func credit(s *Scope) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	first := !s.credited
	s.credited = true
	return first
}
