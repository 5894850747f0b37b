package async

import (
	"context"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file makes standard contexts for tasks that are asked for Done, and
// makes package context treat a task as one of its own.

// endedContext is what package context sees of endedScope. It is made on first
// need, not at import, and its Done channel is one that package context has.
var endedContext = sync.OnceValue(func() *stdContext { c := cancelledContext(errScopeEnded); return &c })

func cancelledContext(cause error) stdContext {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return stdContext{ctx, cancel}
}

// cancelCtxKey is the private key under which package context looks for its
// own kind of context in one that it does not know. It asks us when somebody
// calls context.Cause or derives a context, and needs a true answer to give the
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
		sg := s.stopped()
		std := newContext(s, sg) // takes locks of package context and of what is around: not under ours
		s.mu.Lock()
		if s.std.Load() == nil && s.sig.Load() == sg {
			// From here on s is cancelled through this context: a cancellation
			// that stores s.sig, which it does under mu, comes before or finds it.
			s.stdHere = std
			s.std.Store(&s.stdHere)
			s.mu.Unlock()
			return &s.stdHere
		}
		s.mu.Unlock()
		std.cancel(nil) // somebody was faster: unregister ours
	}
}

// cancelCtx returns what package context looks for under cancelCtxKey: the
// standard context of s. Where that was cancelled by package context from
// further out, at the same time as s by us, it may hold another cause than s;
// then it returns one that holds the cause of s.
func cancelCtx(s *scope) any {
	std := s.context()
	if sg := s.sig.Load(); sg != nil && !tally.Same(context.Cause(std.Context), sg.cause) {
		c := cancelledContext(sg.cause)
		return c.Value(cancelCtxKey)
	}
	return std.Value(cancelCtxKey)
}

// newContext makes a standard context for s as it stands: one that is done
// already if sg says so.
func newContext(s *scope, sg *stopError) stdContext {
	if sg != nil && sg.err == context.DeadlineExceeded {
		ctx, cancel := context.WithDeadlineCause(context.Background(), time.Time{}, sg.cause)
		return stdContext{ctx, func(error) { cancel() }}
	}
	if sg != nil && (sg.err == context.Canceled || s.isShared()) {
		return cancelledContext(sg.cause)
	}
	// Its parent is what can be cancelled without us. Everything between that and
	// s is cancelled by our walk, which cancels this context as it comes by.
	ctx, cancel := context.WithCancelCause(contextAbove(s.t))
	if m := s.t.more; m != nil && m.timed {
		cause := words.TimeoutError(s.t.name(), m.timeout, m.timeout, false)
		timed, stop := context.WithDeadlineCause(ctx, m.origin.deadline, cause)
		return stdContext{timed, func(cause error) { cancel(cause); stop() }}
	}
	return stdContext{ctx, cancel}
}

// limitTime cancels s with a TimeoutError d from now, unless a deadline of what
// is around it comes first.
func (s *scope) limitTime(d time.Duration) {
	m := s.t.more
	deadline := time.Now().Add(d)
	if o := &m.origin; o.deadline.IsZero() || deadline.Before(o.deadline) {
		o.deadline, m.timed = deadline, true
	}
	s.watch(s.context().Context)
}

// listenAbove is called when s can be found by what walks down from its owner:
// it has s told of what cancels it beside that, and looks for what came before.
func (s *scope) listenAbove() {
	if sg := s.t.stoppedFromAbove(); sg != nil {
		s.cancel(sg)
	} else if ctx := s.t.derived(); ctx != nil {
		s.watch(ctx)
	}
}

// watch has s cancelled when ctx is. It takes the place of an earlier watch,
// whose context must be one that ctx is derived from.
func (s *scope) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	// If ctx is done just now, the call of cancel may come before or after we have
	// stored stop: it does not matter, for stop of what was called does nothing.
	stopped := context.AfterFunc(ctx, func() { cancelWith(s, ctx) })
	// If ctx is done, the call is on its way, and finds s as it is. To stop it would wait
	// for the lock of ctx, as long as package context cancels all that is below ctx.
	stop := func() bool { return ctx.Err() == nil && stopped() }
	s.mu.Lock()
	before, ended := s.unwatch, s.ended
	s.unwatch = stop
	s.mu.Unlock()
	if before != nil {
		before()
	}
	if ended {
		stop() // sealed already, perhaps before it could see ours
	}
}

// cancelWith cancels s because ctx, which it watches, is done. Where s knows why, ctx is
// not asked for its Cause: of many scopes that watch one context each would wait for the
// lock of that.
func cancelWith(s *scope, ctx context.Context) {
	s.mu.Lock()
	over := s.cancelled || s.ended
	s.mu.Unlock()
	if over {
		return
	}
	sg := s.stopped()
	if sg == nil {
		sg = stopOf(ctx)
	}
	s.cancel(sg)
}

// contextAbove returns what a standard context of t is made a child of. If package
// context may cancel something around t without asking us, that is the nearest
// such thing, so that it propagates at once. All other cancellations are passed
// on by us: measured, contexts for all levels make a race whose losers ask for
// Done half as slow again.
func contextAbove(t *task) context.Context {
	if ctx := t.derived(); ctx != nil {
		return ctx
	}
	if t.owner != nil && t.cancelledWithOwner() {
		if nearest := t.owner.from.task; nearest != nil {
			return nearest.inner.Load().context().Context
		}
	}
	return context.Background()
}
