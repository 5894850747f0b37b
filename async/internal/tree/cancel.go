package tree

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file cancels scopes and tasks.
//
// A cancellation starts at one scope, because that failed, because somebody
// asked for it, or because the ctx that it was started with is done. From there it
// walks down the tree, to tasks that are cancelled with their owner. Only what has
// an inner scope, queues, or is a promise is walked to; any other task asks its
// owner when it is asked. Left out are shielded tasks, and tasks that were started with a
// ctx that decides alone (Task.derived). If such a ctx is derived from ours, it is done
// by itself, and starts a walk at each inner scope that watches it.
//
// Each step locks one scope, notes the cancellation, and after it has unlocked the scope
// does what follows from it.

// A toCancel is a task that is to be cancelled because its owner was, with stop.
type toCancel struct {
	t    *Task
	stop *StopError
}

// Cancel cancels s with stop and all that is cancelled with it. It wakes the waits
// under these contexts, cancels their standard contexts, starts abort hooks and
// withdraws tasks that are queued. It reports whether s is cancelled for stop, and
// was not before. On an ended scope it does nothing.
//
// When Cancel returns true, Err of everything below is not nil. A second
// goroutine may see a scope cancelled a moment before what is below it, as in
// package context.
//
// A list and not recursion keeps the stack small: a race is often decided on a
// goroutine that is about to end, and growing its stack costs more than the rest
// of a cancellation.
func (s *Scope) Cancel(stop *StopError) (first bool) {
	if before := s.stopped(); before != nil {
		stop = before // perhaps by the ctx it was started with, of which nobody has told us yet
	} else {
		first = true
	}
	s.Home.walks.Add(1)
	defer s.Home.walks.Add(-1)
	var few [4]toCancel
	counts, below := cancelOne(s.Task, stop, few[:0])
	for n := len(below) - 1; n >= 0; n = len(below) - 1 {
		c := below[n]
		_, below = cancelOne(c.t, c.stop, below[:n])
	}
	return first && counts
}

// cancelOne cancels t, but nothing below it. It adds to below what is to be cancelled
// next, and reports whether t was cancelled now and for stop. A task that queues has no inner
// scope as a rule: it is skipped.
//
// The scope is noted as cancelled before the look at its members: see makeScope. Until it
// is unlocked no other cancellation can come between.
func cancelOne(t *Task, stop *StopError, below []toCancel) (bool, []toCancel) {
	if t.Kind == KindPromise {
		t.Scope() // by which it is settled
	}
	s := t.Inner.Load()
	if s == nil {
		t.skipIfQueued(stop)
		return false, below
	}
	stop, first := lockToCancel(s, stop)
	if stop == nil {
		return first, below
	}
	s.cancelled = true
	notifyLocked(s)
	for _, list := range [...]*Task{s.promises, s.children} {
		for c := list; c != nil; c = c.next { // the last one first, to be taken off last
			if c.cancelledWithOwner() && (c.Inner.Load() != nil || c.mayQueue() || c.Kind == KindPromise) {
				below = append(below, toCancel{c, stop})
			}
		}
	}
	if s.opts != nil && s.opts.impatient != nil {
		s.opts.impatient.cancelledLocked(s, stop)
	}
	var after func()
	if m := t.More; m != nil && m.OnCancel != nil {
		after = m.OnCancel(s)
	}
	s.Mu.Unlock()
	if after != nil {
		after()
	}
	t.skipIfQueued(stop)
	return first, below
}

// lockToCancel locks s.Mu and returns why s is cancelled: for stop, unless s has
// said something else before. It returns nil, and s.Mu is not locked, if s has
// ended or its cancellation was passed on already. first reports whether stop is
// what s is cancelled for.
//
// If s has a standard context that one has been cancelled by then, by us or by
// what it is a child of. It wakes what waits for it, so s may have ended before
// we have the lock again, although we were first.
func lockToCancel(s *Scope, stop *StopError) (counts *StopError, first bool) {
	for {
		s.Mu.Lock()
		if first { // of those who have cancelled the standard context at once with the same cause, one was
			first, s.credited = !s.credited, true
		}
		if s.cancelled || s.Ended {
			s.Mu.Unlock()
			return nil, first
		}
		std, noted := s.std.Load(), s.Why.Load()
		switch {
		case std == nil:
			first = s.Why.CompareAndSwap(nil, stop)
			return s.Why.Load(), first
		case noted != nil && std.Err() != nil:
			return noted, first
		}
		s.Mu.Unlock()
		// All of this takes locks of package context and may ask contexts of users.
		if std.Err() == nil {
			if noted == nil {
				noted = stop
			}
			std.cancel(noted.Cause)
			if tally.Same(context.Cause(std.Context), noted.Cause) && std.Err() == noted.Err {
				// As stopped would, but with fewer frames: measured, the stack of a contender
				// that has won grew by them, which was a fifth of a race.
				s.Why.CompareAndSwap(nil, noted)
				first = noted == stop
				continue
			}
		}
		s.stopped() // notes why
	}
}
