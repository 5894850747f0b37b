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
	g.t.more.told = func(*scope) func() { return g.t.timeIsUp }
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
	if _, exit := t.self.(*exitRun); exit && !s.cancelled && s.opts != nil && s.opts.left != nil {
		s.opts.left.overranLocked(s) // else it was told when s was cancelled
	}
	if s.joiner != nil && s.mayLeaveLocked() {
		s.joiner.notify(gotSettled) // as when the time is up, which has been before
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

// abortHookLocked registers the abort hook of s's task, if this is the moment for it, and
// returns what starts it.
func abortHookLocked(s *scope) (start func()) {
	call := s.abortCallLocked()
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
func (s *scope) abortCallLocked() func(context.Context) error {
	m := s.t.more
	sg := s.sig.Load()
	if m.onAbort == nil || m.hooked || sg == nil || s.t.state.Load() != stateRunning {
		return nil
	}
	m.hooked = true
	f := m.onAbort
	return func(ctx context.Context) error { return f(ctx, sg.cause) }
}

// OnAbort sets the task's abort hook. f is called at most once, on a goroutine
// of its own and beside the handler, when the task's context is cancelled
// while the handler runs: after the context, with the cause. A task started
// in a context that is already cancelled has its hook called as it starts.
// f is not called once the handler has returned, nor for a task that is still
// queued. With [Restart] all of this is said of each run.
//
// The ctx of f keeps the task's values, is not cancelled with it, and lasts
// HookTimeout. No wait is held up by f beyond Grace; the task settles only
// after f has returned. An error or panic of f is joined to the task's error.
func OnAbort(f func(ctx context.Context, cause error) error) TaskOption {
	if f == nil {
		panic("async: OnAbort(nil): leave the option out instead")
	}
	return taskOption(func(t *taskOptions) { t.onAbort, t.told = f, abortHookLocked })
}
