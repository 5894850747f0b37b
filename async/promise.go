package async

import (
	"context"
	"fmt"
)

// A Promise is the side of a future from which it is settled. The first call
// of Resolve or Reject wins; any number of goroutines may call them. What happens
// before that call happens before a wait for the future returns. The zero Promise
// has no future: [NewPromise] makes both.
type Promise[T any] struct{ f *Future[T] }

// NewPromise returns a future that no handler stands behind and the promise
// that settles it, for results that come from a callback. It does not block.
//
// The future belongs to the scope of ctx, but the scope does not wait for it. If
// the scope ends first, the future settles with [ErrAbandoned], which is a failure
// of the scope only if a wait was under way. A rejected promise that nobody
// awaited fails the scope like any future.
//
// The context of a promise is a child of ctx. When it is cancelled, with the
// scope, by [Timeout], [Future.Cancel] or an expired Await, the future settles
// with the cause: at once, or, if it has a hook of [OnAbort], when that has
// returned and the promise is still unresolved.
//
// On a scope that has ended the future holds [ErrScopeEnded]. Without a scope in
// ctx the promise belongs to the root, which does not end. A nil ctx panics, and so do
// [Restart], [Heartbeat], [On] and [Priority], which say how a handler runs.
func NewPromise[T any](ctx context.Context, opts ...TaskOption) (*Future[T], *Promise[T]) {
	f := new(Future[T])
	f.init(kindPromise, nil)
	mustPromise(f.checkDiscard(opts))
	t, own := nearest(ctx)
	if own {
		ctx = nil
	}
	if !f.f.promise(ownerOf(t), ctx, opts) {
		f.f.settleUnowned(lateStart(t, f.f.t.naming().in(nil)))
	}
	return f, &Promise[T]{f}
}

// Resolve settles the future with value and returns true; false if it was
// resolved, rejected or abandoned before, in which case value goes to the hook
// of [OnDiscard].
func (p *Promise[T]) Resolve(value T) bool {
	f := p.made("Resolve")
	if !f.f.take() {
		f.discard(value)
		return false
	}
	f.value = value
	var v verdict
	f.offer(&v)
	f.f.settlePromise(&v)
	return true
}

// Reject settles the future with err and returns true; false if it was
// resolved, rejected or abandoned before. A nil err panics.
func (p *Promise[T]) Reject(err error) bool {
	if err == nil {
		panic("async: Reject(nil): a promise is rejected with an error or resolved with a value")
	}
	return p.made("Reject").f.reject(err)
}

// made returns the future of p. It panics if there is none, because op was
// called on a nil Promise or on one that NewPromise has not made.
func (p *Promise[T]) made(op string) *Future[T] {
	if p == nil || p.f == nil {
		panic("async: " + op + " of a nil or zero Promise: it is NewPromise that returns one")
	}
	return p.f
}

// mustPromise panics if o has what says how a handler runs.
func mustPromise(o *taskOptions) {
	for _, of := range [...]struct {
		name  string
		given bool
	}{
		{"Restart", o.added().restart != nil}, {"Heartbeat", o.added().heart != nil},
		{"On", o.on != nil}, {"Priority", o.priority != 0},
	} {
		if of.given {
			panic("async: NewPromise with " + of.name + ": nothing runs for a promise")
		}
	}
}

// promise makes f a promise of owner; false if that has ended.
func (f *future) promise(owner *scope, ctx context.Context, opts []TaskOption) bool {
	t := &f.t
	t.owner, t.exit = owner, byReturn
	t.more = newMore(owner, opts)
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
	v.leaf(&f.t, fmt.Errorf("%w: %s", ErrAbandoned, f.t.name()), f.t.stopped())
	v.abandoned = true
	f.settlePromise(&v)
}

func (f *Future[T]) abandon() { f.f.abandon() }

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
