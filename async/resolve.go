package async

import (
	"context"
	"fmt"
)

// This file settles promises, for which nothing runs.

// promise makes f, which has m, a promise of owner; false if that has ended.
func (f *future) promise(owner *scope, ctx context.Context, m *more) bool {
	t := &f.t
	t.owner, t.exit = owner, byReturn
	t.more = m
	t.more.onCancel = promiseCancelled
	t.setOrigin(ctx)
	if owner.t.kind != kindRoot && !owner.add(t) { // a root does not end, and would keep it for ever
		return false
	}
	// A cancellation of the owner stores why and then walks over its
	// promises, so either it finds this one or we see the signal.
	if t.more.onAbort != nil || t.more.timeout != 0 || t.more.added().stops != nil ||
		t.derived() != nil || t.stopped() != nil {
		h := t.scope()
		if h.isShared() { // the scope of ctx has ended meanwhile, and has abandoned the promise
			return true
		}
		if t.more.timeout != 0 {
			h.limitTime(t.more.timeout)
		}
		t.watchStops()
	}
	return true
}

func (f *future) reject(err error) bool {
	if !f.take() {
		return false
	}
	var v verdict
	v.leaf(&f.t, err, f.t.stopped())
	f.settlePromise(&v)
	return true
}

// abandon settles an unresolved promise whose scope ends. One that somebody else
// is just settling is waited for: the scope does not end before it, and counts
// its error. The channel claims nothing, unlike a wait.
func (f *future) abandon() {
	if !f.take() {
		<-f.doneChannel()
		return
	}
	var v verdict
	v.leaf(&f.t, fmt.Errorf("%w: %s", errAbandoned, f.t.name()), f.t.stopped())
	v.abandoned = true
	f.settlePromise(&v)
}

// stop settles an unresolved promise whose context was cancelled with sg.
func (f *future) stop(sg *stopError) {
	if f.take() {
		f.settlePromise(&verdict{err: sg.asError(), cause: sg.cause, echo: true})
	}
}

// promiseCancelled is called when the context of a promise, whose inner scope is s, is
// cancelled: the promise settles at once, or after its abort hook, if it has one. The hook
// may resolve it, so the promise cannot be what joins the hook.
func promiseCancelled(s *scope) (after func()) {
	f, sg := s.t.self.future(), s.sig.Load()
	stop := func() { f.stop(sg) }
	call := abortCallLocked(s)
	if call == nil {
		return stop
	}
	h := s.t.owner.hook("abort hook", func(ctx context.Context) error {
		defer stop() // also after a panic or Goexit of the hook
		return call(ctx)
	})
	h.t.more.name = "abort hook of " + s.t.name()
	h.t.more.timeout = hookTimeoutOf(s.t)
	if !s.t.owner.add(&h.t) {
		countOut(&h.t)
		return stop
	}
	return h.start
}

// take wins the right to settle a promise: running -> joining, once.
func (f *future) take() bool { return f.t.state.CompareAndSwap(stateRunning, stateJoining) }

func (f *future) settlePromise(v *verdict) {
	f.t.endUnrun()
	if v.err == nil && f.t.leads() {
		f.settleLeader(v)
	} else {
		f.settle(v)
	}
}
