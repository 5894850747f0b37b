package async

import (
	"context"
	"time"
)

// This file runs hooks: what users have us call beside their tasks, or after
// them. Those of a scope's end are in exithook.go, those of stalls in
// straggler.go.

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
	g.t.more.name = what + " of " + s.t.name()
	g.t.more.timeout = s.t.hookTimeout()
}

// countOut takes a hook out of those that Shutdown waits for: it has ended, or
// its time is up. The first of the two counts. What has overrun is a straggler
// like any other from then on.
func (t *task) countOut() {
	if t.more.countedOut.CompareAndSwap(false, true) {
		t.owner.hooksInTime.Add(-1)
		t.owner.home.wake()
	}
}

// timeIsUp is called when the context of the hook t is cancelled. A scope with
// DetachAfter may have waited for just this: either giveUp finds the hook counted
// out, or we find that it has given up, both under the lock of the scope.
func (t *task) timeIsUp() {
	t.countOut()
	s := t.owner
	s.mu.Lock()
	if _, exit := t.self.(*exitRun); exit && !s.cancelled {
		s.armDetachLocked() // else it was when s was cancelled
	}
	if s.joiner != nil && s.mayLeaveLocked() {
		s.joiner.notify(gotSettled) // as in giveUp, which has been before
	}
	s.mu.Unlock()
}

// hookTimeout returns how long hooks of t may take: what the task says, else
// the nearest scope around it.
func (t *task) hookTimeout() time.Duration {
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

// abortHookLocked registers and returns the abort hook of s's task if this is
// the moment for it: the context is cancelled and the handler runs. The flag
// makes it the only one; mu orders it before the handler's return or leaves it
// out.
func (s *scope) abortHookLocked() *goTask {
	m := s.t.more
	sg := s.sig.Load()
	if m == nil || m.onAbort == nil || m.hooked || sg == nil || s.t.state.Load() != stateRunning {
		return nil
	}
	m.hooked = true
	f := m.onAbort
	call := func(ctx context.Context) error { return f(ctx, sg.cause) }
	if s.t.kind == kindPromise { // may be resolved by its hook, so it cannot be what joins it
		p := s.t.self.future()
		h := s.t.owner.hook("abort hook", func(ctx context.Context) error {
			defer p.stop(sg) // also after a panic or Goexit of the hook
			return call(ctx)
		})
		h.t.more.name = "abort hook of " + s.t.name()
		if !s.t.owner.add(&h.t) {
			h.t.countOut()
			return nil
		}
		return h
	}
	h := s.hook("abort hook", call)
	s.linkLocked(&h.t)
	return h
}
