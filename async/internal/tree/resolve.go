package tree

import (
	"context"
	"fmt"
)

// This file settles promises, for which nothing runs.

// Promise makes f, which has m, a promise of owner; false if that has ended.
func (f *Future) Promise(owner *Scope, ctx context.Context, m *More) bool {
	t := &f.Task
	t.Owner, t.Exit = owner, ByReturn
	t.More = m
	t.More.OnCancel = promiseCancelled
	t.setOrigin(ctx)
	if owner.Task.Kind != KindRoot && !owner.Add(t) { // a root does not end, and would keep it for ever
		return false
	}
	// A cancellation of the owner stores why and then walks over its
	// promises, so either it finds this one or we see why.
	if t.More.OnAbort != nil || t.More.Timeout != 0 || t.More.Added().Stops != nil ||
		t.derived() != nil || t.Stopped() != nil {
		h := t.Scope()
		if h.isShared() { // the scope of ctx has ended meanwhile, and has abandoned the promise
			return true
		}
		if t.More.Timeout != 0 {
			h.LimitTime(t.More.Timeout)
		}
		t.WatchStops()
	}
	return true
}

// Reject settles a promise with err, and reports false if it has settled before.
func (f *Future) Reject(err error) bool {
	if !f.Take() {
		return false
	}
	var v Verdict
	v.Leaf(&f.Task, err, StoppedByNow(&f.Task))
	f.SettlePromise(&v)
	return true
}

// abandon settles an unresolved promise whose scope ends. One that somebody else
// is just settling is waited for: the scope does not end before it, and counts
// its error. The channel claims nothing, unlike a wait.
func (f *Future) abandon() {
	if !f.Take() {
		<-f.DoneChannel()
		return
	}
	var v Verdict
	v.Leaf(&f.Task, fmt.Errorf("%w: %s", ErrAbandoned, f.Task.Name()), f.Task.Stopped())
	v.abandoned = true
	f.SettlePromise(&v)
}

// stop settles an unresolved promise whose context was cancelled with stop.
func (f *Future) stop(stop *StopError) {
	if f.Take() {
		v := stop.verdict()
		f.SettlePromise(&v)
	}
}

// promiseCancelled is called when the context of a promise, whose inner scope is s, is
// cancelled: the promise settles at once, or after its abort hook, if it has one. The hook
// may resolve it, so the promise cannot be what joins the hook.
func promiseCancelled(s *Scope) (after func()) {
	f, stop := s.Task.Self.Future(), s.Why.Load()
	settle := func() { f.stop(stop) }
	call := abortCallLocked(s)
	if call == nil {
		return settle
	}
	h := s.Task.Owner.hook("abort hook", func(ctx context.Context) error {
		defer settle() // also after a panic or Goexit of the hook
		return call(ctx)
	})
	h.Task.More.Name = "abort hook of " + s.Task.Name()
	h.Task.More.Timeout = HookTimeoutOf(s.Task)
	if !s.Task.Owner.Add(&h.Task) {
		countOut(&h.Task)
		return settle
	}
	return h.start
}

// Take wins the right to settle a promise: running -> joining, once.
func (f *Future) Take() bool { return f.Task.State.CompareAndSwap(StateRunning, StateJoining) }

// SettlePromise settles a promise that the caller has taken.
func (f *Future) SettlePromise(v *Verdict) {
	f.Task.EndUnrun()
	f.Settle(v, v.Err == nil && f.Task.Leads())
}
