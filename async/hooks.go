package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file runs hooks: those of users that are called beside a task or at the end of a
// scope, and what other packages of ours do at that end.

// A hook is a task of kind kindHook on a goroutine of its own, with the values of
// its scope, a time limit of its own, and a scope that joins it. Nothing that
// cancels the scope reaches it. Its errors stand behind all others: a hook never
// decides how a scope ends.

// hook returns a task of s that runs f shielded from cancellation and within
// the hook timeout. What goes wrong in it is noted beside other errors.
func (s *scope) hook(what string, f func(context.Context) error) *goTask {
	g := new(goTask)
	s.initHook(g, g, what, f)
	return g
}

// initHook makes g, which is w or part of it, what hook returns.
func (s *scope) initHook(g *goTask, w work, what string, f func(context.Context) error) {
	s.hooksInTime.Add(1)
	g.handler = f
	g.t.self, g.t.kind, g.t.owner = w, kindHook, s
	g.t.equip(&more{shielded: true}, nil)
	g.t.more.onCancel = func(*scope) func() { return func() { timeIsUp(&g.t) } }
	g.t.more.name = what + " of " + s.t.name()
	g.t.more.timeout = hookTimeoutOf(s.t)
}

// countOut takes a hook out of those that Shutdown waits for: it has ended, or
// its time is up. The first of the two counts. What has overrun is a straggler
// like any other from then on.
func countOut(t *task) {
	if t.more.countedOut.CompareAndSwap(false, true) {
		t.owner.hooksInTime.Add(-1)
		t.owner.home.wake()
	}
}

// timeIsUp is called when the context of the hook t is cancelled. A scope with
// DetachAfter may have waited for just this: either the join finds the hook counted
// out, or we find that the scope has given up, both under the lock of the scope.
func timeIsUp(t *task) {
	countOut(t)
	s := t.owner
	s.mu.Lock()
	if _, exit := t.self.(*exitRun); exit && !s.cancelled && s.opts != nil && s.opts.impatient != nil {
		s.opts.impatient.overranLocked(s) // else it was told when s was cancelled
	}
	if s.joiner != nil && mayLeaveLocked(s) {
		s.joiner.notify(gotSettled) // as when the time is up, which has been before
	}
	s.mu.Unlock()
}

// hookTimeoutOf returns how long hooks of t may take: what the task says, else
// the nearest scope around it.
func hookTimeoutOf(t *task) time.Duration {
	if m := t.more; m != nil && m.hookTimeout > 0 {
		return m.hookTimeout
	}
	for ; t != nil; t = t.owner.task() {
		if h := t.inner.Load(); h != nil && h.opts != nil && h.opts.hookTimeout > 0 {
			return h.opts.hookTimeout
		}
	}
	return defaultHookTimeout
}

// abortHookLocked registers the abort hook of s's task, if this is the moment for it, and
// returns what starts it.
func abortHookLocked(s *scope) (start func()) {
	call := abortCallLocked(s)
	if call == nil {
		return nil
	}
	h := s.hook("abort hook", call)
	s.linkLocked(&h.t)
	return h.start
}

// abortCallLocked returns the call of the abort hook of s's task if this is the moment for
// it: the context is cancelled and the handler runs. The flag makes it the only one; mu
// orders it before the handler's return or leaves it out.
func abortCallLocked(s *scope) func(context.Context) error {
	m := s.t.more
	sg := s.sig.Load()
	if m.onAbort == nil || m.hooked || sg == nil || s.t.state.Load() != stateRunning {
		return nil
	}
	m.hooked = true
	f := m.onAbort
	return func(ctx context.Context) error { return f(ctx, sg.cause) }
}

// exitHookLocked puts x on the list of s, to be the next one that is run.
func (s *scope) exitHookLocked(x *exitHook) {
	x.scope, x.next, x.listed = s, s.exits, true
	if x.next != nil {
		x.next.prev = x
	}
	s.exits = x
}

// unlistLocked takes x off the list it is on.
func (x *exitHook) unlistLocked() {
	if x.next != nil {
		x.next.prev = x.prev
	}
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.scope.exits = x.next
	}
	x.prev, x.next, x.listed = nil, nil, false
}

// Remove takes x off the list of its scope, unless it has been taken off to be
// run, and reports whether it did. It may be called any number of times. See
// [bridge.Registration].
func (x *exitHook) Remove() bool {
	s := x.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.listed {
		return false
	}
	x.unlistLocked()
	return true
}

// stop is Remove for the hook of a user, and x forgets that.
func (x *exitHook) stop() bool {
	removed := x.Remove()
	if removed {
		x.call = nil
	}
	return removed
}

// Recall is Remove, and x forgets its scope. See [bridge.Registration].
func (x *exitHook) Recall() bool {
	s := x.scope
	if s == nil {
		return false
	}
	s.mu.Lock()
	listed := x.listed
	if listed {
		x.unlistLocked()
	}
	x.scope = nil
	s.mu.Unlock()
	return listed
}

// Renew puts x on the list of a scope again. See [bridge.Registration].
func (x *exitHook) Renew(scope context.Context) bool {
	s := scope.(*task).scope()
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.exitHookLocked(x)
	}
	s.mu.Unlock()
	return !ended
}

// takeExit takes the exit hook that was registered last off the list of s, nil
// if there is none.
func takeExit(s *scope) *exitHook {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.exits
	if x != nil {
		x.unlistLocked()
	}
	return x
}

// runExits runs the exit hooks one after another and reports whether there were
// any. What a hook starts is joined before the next one is run. It stops when
// DetachAfter has passed; the hooks that are left are run when the last straggler
// has ended, see leftBehind.run.
//
// It is called again and again until nothing is left: a hook may register more,
// and so may a bare goroutine. Either is seen before the scope is closed, because
// the list and the ended flag share one lock.
func runExits(s *scope, own tally.Body) bool {
	for ran := false; ; ran = true {
		x := takeExit(s)
		if x == nil {
			return ran
		}
		v := verdict{err: s.returnedErr}
		if v.err == nil {
			sumUp(s, own, &v)
		}
		how, outcome := endingOf(s, v.err)
		h := newExitRun(s, x, how, outcome)
		if h == nil {
			continue
		}
		s.mu.Lock()
		s.linkLocked(&h.t)
		s.mu.Unlock()
		h.start()
		if !s.join() {
			return true
		}
		takeUnclaimed(s)
	}
}

// newExitRun returns the task that runs x; nil if telling an Ender is all there is
// to do. It tells an Ender at once.
func newExitRun(s *scope, x *exitHook, how bridge.Ending, outcome error) *exitRun {
	h := new(exitRun)
	if x.ender == nil {
		s.initHook(&h.goTask, h, "exit hook", func(ctx context.Context) error {
			defer h.lookAtClock()
			return x.call(ctx, outcome)
		})
		return h
	}
	x.ender.ScopeEnds(how, outcome)
	j, joins := x.ender.(bridge.Joiner)
	if !joins || j.Ended() {
		return nil
	}
	h.joiner = j
	s.initHook(&h.goTask, h, "end of "+j.Name(), j.Join)
	h.t.more.timeout = 0
	countOut(&h.t) // it takes as long as it takes, so Shutdown does not wait for it as for a hook
	return h
}

// lookAtClock is called when the hook has come to its end, and notes whether it
// was too late.
func (h *exitRun) lookAtClock() {
	cause := context.Cause(&h.t)
	if of, ok := words.LimitIn(cause); ok && of == h.t.name() {
		h.late = cause
	}
}

// endingOf returns how s, whose outcome so far is given, is ending, and what its exit
// hooks are told. A scope that was cancelled does not end well, whatever its body has
// returned.
func endingOf(s *scope, outcome error) (bridge.Ending, error) {
	sg := s.t.stopped()
	switch {
	case sg == nil && outcome == nil:
		return bridge.Well, nil
	case sg == nil:
		return bridge.Failed, outcome
	}
	own := broughtOn(s, sg)
	switch outcome.(type) {
	case nil, *stopError:
		outcome = &stopError{err: sg.err, cause: sg.cause, own: own}
	}
	return howEnded(outcome), outcome
}

// howEnded returns how a scope ends that has the outcome err.
func howEnded(err error) bridge.Ending {
	if err == nil {
		return bridge.Well
	}
	if sg, stopped := err.(*stopError); stopped {
		return endingFor(sg.own)
	}
	if l := words.ListIn(err); l != nil && l.cause != nil {
		return endingFor(l.own)
	}
	return bridge.Failed
}

func endingFor(own bool) bridge.Ending {
	if own {
		return bridge.Failed
	}
	return bridge.Stopped
}
