package tree

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
var endedContext = sync.OnceValue(func() *stdContext { c := cancelledContext(ErrScopeEnded); return &c })

func cancelledContext(cause error) stdContext {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return stdContext{ctx, cancel}
}

// cancelCtxKey is the private key under which package context looks for its
// own kind of context in one that it does not know. It asks us when somebody
// calls context.Cause or derives a context, and needs a true answer to give the
// cause and to propagate without a goroutine. If a release of Go asked in another way, the
// causes of derived contexts would be lost: many tests of package async fail then.
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
func (s *Scope) context() *stdContext {
	if s == endedScope {
		return endedContext()
	}
	for {
		if std := s.std.Load(); std != nil {
			return std
		}
		stop := s.stopped()
		std := newContext(s, stop) // takes locks of package context and of what is around: not under ours
		s.Mu.Lock()
		if s.std.Load() == nil && s.Why.Load() == stop {
			// From here on s is cancelled through this context: a cancellation
			// that stores s.Why, which it does under Mu, comes before or finds it.
			s.stdHere = std
			s.std.Store(&s.stdHere)
			s.Mu.Unlock()
			return &s.stdHere
		}
		s.Mu.Unlock()
		std.cancel(nil) // somebody was faster: unregister ours
	}
}

// cancelCtx returns what package context looks for under cancelCtxKey: the
// standard context of s. Where that was cancelled by package context from
// further out, at the same time as s by us, it may hold another cause than s;
// then it returns one that holds the cause of s.
func cancelCtx(s *Scope) any {
	std := s.context()
	if stop := s.Why.Load(); stop != nil && !tally.Same(context.Cause(std.Context), stop.Cause) {
		c := cancelledContext(stop.Cause)
		return c.Value(cancelCtxKey)
	}
	return std.Value(cancelCtxKey)
}

// newContext makes a standard context for s as it stands: one that is done
// already if stop says so.
func newContext(s *Scope, stop *StopError) stdContext {
	if stop != nil && stop.Err == context.DeadlineExceeded {
		ctx, cancel := context.WithDeadlineCause(context.Background(), time.Time{}, stop.Cause)
		return stdContext{ctx, func(error) { cancel() }}
	}
	if stop != nil && (stop.Err == context.Canceled || s.isShared()) {
		return cancelledContext(stop.Cause)
	}
	// Its parent is what can be cancelled without us. Everything between that and
	// s is cancelled by our walk, which cancels this context as it comes by.
	ctx, cancel := context.WithCancelCause(contextAbove(s.Task))
	if m := s.Task.More; m != nil && m.timed {
		cause := Codec.TimeoutError(s.Task.Name(), m.Timeout, m.Timeout, false)
		timed, release := context.WithDeadlineCause(ctx, m.Origin.deadline, cause)
		return stdContext{timed, func(cause error) { cancel(cause); release() }}
	}
	return stdContext{ctx, cancel}
}

// LimitTime cancels s with a TimeoutError d from now, unless a deadline of what
// is around it comes first.
func (s *Scope) LimitTime(d time.Duration) {
	m := s.Task.More
	deadline := time.Now().Add(d)
	if o := &m.Origin; o.deadline.IsZero() || deadline.Before(o.deadline) {
		o.deadline, m.timed = deadline, true
	}
	s.watch(s.context().Context)
}

// listenAbove is called when s can be found by what walks down from its owner:
// it has s told of what cancels it beside that, and looks for what came before.
func (s *Scope) listenAbove() {
	if stop := s.Task.stoppedFromAbove(); stop != nil {
		s.Cancel(stop)
	} else if ctx := s.Task.derived(); ctx != nil {
		s.watch(ctx)
	}
}

// watch has s cancelled when ctx is. It takes the place of an earlier watch,
// whose context must be one that ctx is derived from.
func (s *Scope) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	// If ctx is done just now, the call of cancel may come before or after we have
	// stored stop: it does not matter, for stop of what was called does nothing.
	stopped := context.AfterFunc(ctx, func() { cancelWith(s, ctx) })
	// If ctx is done, the call is on its way, and finds s as it is. To stop it would wait
	// for the lock of ctx, as long as package context cancels all that is below ctx.
	stop := func() bool { return ctx.Err() == nil && stopped() }
	s.Mu.Lock()
	before, ended := s.unwatch, s.Ended
	s.unwatch = stop
	s.Mu.Unlock()
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
func cancelWith(s *Scope, ctx context.Context) {
	s.Mu.Lock()
	over := s.cancelled || s.Ended
	s.Mu.Unlock()
	if over {
		return
	}
	stop := s.stopped()
	if stop == nil {
		stop = StopOf(ctx)
	}
	s.Cancel(stop)
}

// contextAbove returns what a standard context of t is made a child of. If package
// context may cancel something around t without asking us, that is the nearest
// such thing, so that it propagates at once. All other cancellations are passed
// on by us: measured, contexts for all levels make a race whose losers ask for
// Done half as slow again.
func contextAbove(t *Task) context.Context {
	if ctx := t.derived(); ctx != nil {
		return ctx
	}
	if t.Owner != nil && t.cancelledWithOwner() {
		if nearest := t.Owner.from.task; nearest != nil {
			return nearest.Inner.Load().context().Context
		}
	}
	return context.Background()
}
