package tree

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file runs hooks: those of users that are called beside a task or at the end of a
// scope, and what other packages of ours do at that end.

// A hook is a task of kind KindHook on a goroutine of its own, with the values of
// its scope, a time limit of its own, and a scope that joins it. Nothing that
// cancels the scope reaches it. Its errors stand behind all others: a hook never
// decides how a scope ends.

// hook returns a task of s that runs f shielded from cancellation and within
// the hook timeout. A failure in it is noted beside other errors.
func (s *Scope) hook(what string, f func(context.Context) error) *GoTask {
	g := new(GoTask)
	s.initHook(g, g, what, f)
	return g
}

// initHook makes g, which is w or part of it, what hook returns.
func (s *Scope) initHook(g *GoTask, w Work, what string, f func(context.Context) error) {
	s.hooksInTime.Add(1)
	g.Handler = f
	g.Task.Self, g.Task.Kind, g.Task.Owner = w, KindHook, s
	g.Task.Equip(&More{shielded: true}, nil)
	g.Task.More.OnCancel = func(*Scope) func() { return func() { timeIsUp(&g.Task) } }
	g.Task.More.Name = what + " of " + s.Task.Name()
	g.Task.More.Timeout = HookTimeoutOf(s.Task)
}

// countOut takes a hook out of those that Shutdown waits for: it has ended, or
// its time is up. The first of the two counts. A hook that has overrun is a straggler
// like any other from then on.
func countOut(t *Task) {
	if t.More.countedOut.CompareAndSwap(false, true) {
		t.Owner.hooksInTime.Add(-1)
		t.Owner.Home.wake()
	}
}

// timeIsUp is called when the context of the hook t is cancelled. A scope with
// DetachAfter may have waited for just this: either the join finds the hook counted
// out, or we find that the scope has given up, both under the lock of the scope.
func timeIsUp(t *Task) {
	countOut(t)
	s := t.Owner
	s.Mu.Lock()
	if _, exit := t.Self.(*exitRun); exit && !s.cancelled && s.opts != nil && s.opts.impatient != nil {
		s.opts.impatient.overranLocked(s) // else it was told when s was cancelled
	}
	if s.joiner != nil && mayLeaveLocked(s) {
		s.joiner.notify(gotSettled) // as when the time is up, which has been before
	}
	s.Mu.Unlock()
}

// HookTimeoutOf returns how long hooks of t may take: what the task says, else
// the nearest scope around it.
func HookTimeoutOf(t *Task) time.Duration {
	if m := t.More; m != nil && m.HookTimeout > 0 {
		return m.HookTimeout
	}
	for ; t != nil; t = t.Owner.TaskOrNil() {
		if h := t.Inner.Load(); h != nil && h.opts != nil && h.opts.HookTimeout > 0 {
			return h.opts.HookTimeout
		}
	}
	return defaultHookTimeout
}

// AbortHookLocked registers the abort hook of s's task, if this is the moment for it, and
// returns what starts it.
func AbortHookLocked(s *Scope) (start func()) {
	call := abortCallLocked(s)
	if call == nil {
		return nil
	}
	h := s.hook("abort hook", call)
	s.linkLocked(&h.Task)
	return h.start
}

// abortCallLocked returns the call of the abort hook of s's task if this is the moment for
// it: the context is cancelled and the handler runs. The flag makes it the only one; Scope.Mu
// orders it before the handler's return or leaves it out.
func abortCallLocked(s *Scope) func(context.Context) error {
	m := s.Task.More
	stop := s.Why.Load()
	if m.OnAbort == nil || m.hooked || stop == nil || s.Task.State.Load() != StateRunning {
		return nil
	}
	m.hooked = true
	f := m.OnAbort
	return func(ctx context.Context) error { return f(ctx, stop.Cause) }
}

// ExitHookLocked puts x on the list of s, to be the next one that is run.
func (s *Scope) ExitHookLocked(x *ExitHook) {
	x.scope, x.next, x.listed = s, s.Exits, true
	if x.next != nil {
		x.next.prev = x
	}
	s.Exits = x
}

// unlistLocked takes x off the list it is on.
func (x *ExitHook) unlistLocked() {
	if x.next != nil {
		x.next.prev = x.prev
	}
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.scope.Exits = x.next
	}
	x.prev, x.next, x.listed = nil, nil, false
}

// Remove takes x off the list of its scope, unless it has been taken off to be
// run, and reports whether it did. It may be called any number of times. See
// [bridge.Registration].
func (x *ExitHook) Remove() bool {
	s := x.scope
	if s == nil {
		return false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	listed := x.listed
	if listed {
		x.unlistLocked()
	}
	return listed
}

// Stop is Remove for the hook of a user, and x forgets that.
func (x *ExitHook) Stop() bool {
	removed := x.Remove()
	if removed {
		x.Call = nil
	}
	return removed
}

// Recall is Remove, and x forgets its scope. See [bridge.Registration].
func (x *ExitHook) Recall() bool {
	removed := x.Remove()
	x.scope = nil
	return removed
}

// Renew puts x on the list of a scope again. See [bridge.Registration].
func (x *ExitHook) Renew(scope context.Context) bool {
	s := scope.(*Task).Scope()
	s.Mu.Lock()
	ended := s.Ended
	if !ended {
		s.ExitHookLocked(x)
	}
	s.Mu.Unlock()
	return !ended
}

// runExit starts x, an exit hook of s, which is joined before the next one is run. Hooks
// that are left when DetachAfter has passed are run when the last straggler has ended, see
// leftBehind.Run.
func runExit(s *Scope, x *ExitHook, handler tally.HandlerEnd) {
	s.Mu.Lock()
	v := Verdict{Err: seldomOf(s).returnedErr}
	s.Mu.Unlock()
	if v.Err == nil {
		sumUp(s, handler, &v, false)
	}
	how, outcome := endingOf(s, v.Err)
	if h := newExitRun(s, x, how, outcome); h != nil {
		s.Mu.Lock()
		s.linkLocked(&h.Task)
		s.Mu.Unlock()
		h.start()
	}
}

// newExitRun returns the task that runs x; nil if telling an Ender is all there is
// to do. It tells an Ender at once.
func newExitRun(s *Scope, x *ExitHook, how bridge.Ending, outcome error) *exitRun {
	h := new(exitRun)
	if x.ender == nil {
		s.initHook(&h.GoTask, h, "exit hook", func(ctx context.Context) error {
			defer h.lookAtClock()
			return x.Call(ctx, outcome)
		})
		return h
	}
	x.ender.ScopeEnds(how, outcome)
	j, joins := x.ender.(bridge.Joiner)
	if !joins || j.Ended() {
		return nil
	}
	h.joiner = j
	s.initHook(&h.GoTask, h, "end of "+j.Name(), j.Join)
	h.Task.More.Timeout = 0
	countOut(&h.Task) // it takes as long as it takes, so Shutdown does not wait for it as for a hook
	return h
}

// lookAtClock is called when the hook has come to its end, and notes whether it
// was too late.
func (h *exitRun) lookAtClock() {
	cause := context.Cause(&h.Task)
	if task, ok := Codec.LimitIn(cause); ok && task == h.Task.Name() {
		h.late = cause
	}
}

// endingOf returns how s, whose outcome so far is given, is ending, and what its exit
// hooks are told. A scope that was cancelled does not end well, whatever its body has
// returned.
func endingOf(s *Scope, outcome error) (bridge.Ending, error) {
	stop := s.Task.Stopped()
	switch {
	case stop == nil && outcome == nil:
		return bridge.Well, nil
	case stop == nil:
		return bridge.Failed, outcome
	}
	inside := causedInside(s, stop)
	switch outcome.(type) {
	case nil, *StopError:
		outcome = &StopError{Err: stop.Err, Cause: stop.Cause, fromInside: inside}
	}
	return HowEnded(outcome), outcome
}

// HowEnded returns how a scope ends that has the outcome err.
func HowEnded(err error) bridge.Ending {
	stop, stopped := err.(*StopError)
	list := Codec.ListIn(err)
	switch {
	case err == nil:
		return bridge.Well
	case stopped && !stop.fromInside, list != nil && list.Cause != nil && !list.FromInside:
		return bridge.Stopped
	default:
		return bridge.Failed
	}
}
