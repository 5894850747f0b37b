package async

import (
	"context"
	"errors"
	"sync"
	"time"
)

// This file makes a task a context that package context treats as one of its
// own. What it says is pulled from the tree until somebody asks for Done; then
// a standard context is made and package context pushes as it always does.

// A stopError is why a context is done: what its Err and its Cause return. It is
// also the error of who was told to stop, where the two differ.
type stopError struct{ err, cause error }

func (sg *stopError) Error() string   { return sg.cause.Error() }
func (sg *stopError) Unwrap() []error { return []error{sg.cause, sg.err} }

// told returns the error of who was told to stop. It matches err and cause.
func (sg *stopError) told() error {
	if errors.Is(sg.cause, sg.err) {
		return sg.cause
	}
	return sg
}

// canceled returns the signal of an abort with the given cause.
func canceled(cause error) *stopError { return &stopError{context.Canceled, cause} }

var endedSignal = canceled(ErrScopeEnded)

// endedScope is the inner scope of every task that ended without one.
var endedScope = new(scope)

// endedContext is what package context sees of endedScope. It is made on first
// need, not at import, and its Done channel is one that package context has.
var endedContext = sync.OnceValue(func() *stdContext { c := cancelledContext(ErrScopeEnded); return &c })

func cancelledContext(cause error) stdContext {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return stdContext{ctx, cancel}
}

// cancelCtxKey is the private key under which package context looks for its
// own kind of context in a stranger. It asks us when somebody calls
// context.Cause or derives a context, and needs a true answer to give the
// cause and to propagate without a goroutine.
var cancelCtxKey = func() any {
	var p keyProbe
	context.Cause(&p)
	return p.key
}()

// keyProbe is a context that remembers the first key it is asked for.
type keyProbe struct{ key any }

func (p *keyProbe) Deadline() (time.Time, bool) { return time.Time{}, false }
func (p *keyProbe) Done() <-chan struct{}       { return nil }
func (p *keyProbe) Err() error                  { return context.Canceled }
func (p *keyProbe) Value(key any) any {
	if p.key == nil {
		p.key = key
	}
	return nil
}

// stdContext is a standard context and the function that cancels it.
type stdContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// Deadline returns the earliest deadline of t, its owner and the context it
// was started with.
func (t *task) Deadline() (deadline time.Time, ok bool) {
	if p := t.parent(); p != nil {
		deadline, ok = p.Deadline()
	}
	if m := t.more; m != nil && !m.deadline.IsZero() && (!ok || m.deadline.Before(deadline)) {
		return m.deadline, true
	}
	return deadline, ok
}

// Done returns a channel that is closed when t's context is cancelled.
func (t *task) Done() <-chan struct{} { return t.scope().context().Done() }

// Err returns nil until t's context is cancelled.
func (t *task) Err() error {
	if sg := t.stopped(); sg != nil {
		return sg.err
	}
	return nil
}

// Value looks a key up in the context that t was started with.
func (t *task) Value(key any) any {
	if key == cancelCtxKey {
		return t.scope().context().Value(key)
	}
	if key == (scopeKey{}) {
		return t
	}
	for ; t != nil; t = t.owner.task() {
		if t.more != nil && t.more.ctx != nil {
			return t.more.ctx.Value(key)
		}
	}
	return nil
}

// String names t where a context is printed.
func (t *task) String() string { return "async." + t.name() }

// parent returns the context that t's own is a child of, nil for none.
func (t *task) parent() context.Context {
	switch {
	case t.more != nil && t.more.shielded:
		return nil
	case t.more != nil && t.more.ctx != nil:
		return t.more.ctx
	case t.owner == nil, t.owner.t.kind == kindRoot && t.owner.t.more == nil:
		return nil // the process root is nobody's context
	default:
		return t.owner.t
	}
}

// stopped returns why t's context is done, nil while it is not.
func (t *task) stopped() *stopError {
	// Every wait asks this, so first a loop looks for any sign of a cancellation
	// up to the root; most often there is none.
	for u := t; !u.touched(); u = u.owner.t {
		if u.owner == nil || u.more != nil && u.more.shielded {
			return nil
		}
	}
	return t.whyStopped()
}

// touched reports whether anything but its owner says that t is cancelled.
func (t *task) touched() bool {
	if h := t.inner.Load(); h != nil {
		if h.sig.Load() != nil {
			return true
		}
		if std := h.std.Load(); std != nil && std.Err() != nil {
			return true
		}
	}
	return isDone(t.foreign())
}

// isDone reports whether ctx, which may be nil, is done. It asks Done and not
// Err, because the Err of a stranger's context may ask its parents, which may
// be ours: at every level that would be twice.
func isDone(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// whyStopped is stopped in full.
func (t *task) whyStopped() *stopError {
	h := t.inner.Load()
	if h == nil {
		return t.pull()
	}
	if sg := h.sig.Load(); sg != nil {
		return sg
	}
	if std := h.std.Load(); std != nil {
		if err := std.Err(); err != nil { // before our walk or AfterFunc came by
			return &stopError{err, context.Cause(std)}
		}
	}
	if sg := t.pull(); sg != nil {
		h.cancel(sg)
		return h.sig.Load()
	}
	return nil
}

// pull looks for a cancellation in what t depends on.
func (t *task) pull() *stopError {
	if t.more != nil && t.more.shielded || t.owner == nil && t.more == nil {
		return nil
	}
	ctx := t.foreign()
	if isDone(ctx) {
		return &stopError{ctx.Err(), context.Cause(ctx)}
	}
	if t.owner == nil {
		return nil
	}
	sg := t.owner.t.whyStopped()
	if sg != nil && ctx != nil {
		return canceled(sg.cause) // ctx's Deadline said nothing of it
	}
	return sg
}

// follows reports whether ctx, with which something is started in s, is done
// exactly when s is: whether it was derived from that by adding values only. It must be known,
// because the Err of such a context asks the task, which asks its owners: to
// ask both at every level would take 2^depth steps.
func (s *scope) follows(ctx context.Context) bool {
	if ctx == nil || s == &process.s {
		return false
	}
	done := ctx.Done()
	return done != nil && done == s.t.Done()
}

// watch has s cancelled when ctx is.
func (s *scope) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { s.cancel(&stopError{ctx.Err(), context.Cause(ctx)}) })
	s.mu.Lock()
	ended := s.ended
	if before := s.unwatch; before != nil {
		s.unwatch = func() { before(); stop() }
	} else {
		s.unwatch = func() { stop() }
	}
	s.mu.Unlock()
	if ended {
		stop()
	}
}

// limitTime cancels s with a TimeoutError d from now.
func (s *scope) limitTime(d time.Duration) {
	s.t.more.deadline = time.Now().Add(d)
	s.watch(s.context())
}

// context returns the standard context of s, making it if need be. Once made,
// it is what decides why s is cancelled.
func (s *scope) context() *stdContext {
	if s == endedScope {
		return endedContext()
	}
	for {
		if std := s.std.Load(); std != nil {
			return std
		}
		sg := s.sig.Load()
		std := s.newContext(sg)
		s.mu.Lock()
		if s.std.Load() == nil && s.sig.Load() == sg {
			s.stdHere = std
			s.std.Store(&s.stdHere)
			s.mu.Unlock()
			if sg == nil {
				s.catchStop()
			}
			return &s.stdHere
		}
		s.mu.Unlock()
		std.cancel(nil) // somebody was faster: unregister ours
	}
}

// catchStop cancels s if an owner was cancelled whose walk has not come to us.
// It stores its signal before it walks, and we have stored our context.
func (s *scope) catchStop() {
	if sg := s.t.pull(); sg != nil {
		s.cancel(sg)
	}
}

// newContext makes a standard context for s as it stands, or one that is
// cancelled already.
func (s *scope) newContext(sg *stopError) stdContext {
	if sg != nil && sg.err == context.Canceled {
		return cancelledContext(sg.cause)
	}
	ctx, cancel := context.WithCancelCause(s.t.above())
	if m := s.t.more; m != nil && !m.deadline.IsZero() {
		cause := &TimeoutError{Task: s.t.name(), Limit: m.timeout, Waited: m.timeout}
		timed, stop := context.WithDeadlineCause(ctx, m.deadline, cause)
		return stdContext{timed, func(cause error) { cancel(cause); stop() }}
	}
	return stdContext{ctx, cancel}
}

// above returns what a standard context of t is made a child of. If package
// context may cancel anything above without asking us, that is the owner's, so
// that it propagates at once and every level keeps the cause that came first.
// Otherwise only we cancel, and push from level to level ourselves: measured,
// contexts for all levels make a race whose losers ask for Done half as slow
// again.
func (t *task) above() context.Context {
	if t.foreign() != nil {
		return t.more.ctx
	}
	for u := t; (u.more == nil || !u.more.shielded) && u.owner != nil; {
		u = u.owner.t
		if u.foreign() != nil || u.more != nil && !u.more.deadline.IsZero() {
			return t.owner.t
		}
	}
	return context.Background()
}
