package tree

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/crash"
)

// This file makes a task a context, and its scope, which is made on first need. The answers of the
// context are looked up until somebody asks for Done; then a standard context is made, see
// stdcontext.go, and package context pushes as it always does. So a task that never looks at its
// context pays for none. Where the answers come from is in cause.go.

// Deadline returns the earliest deadline of the ctx that t was started with,
// of what is around that, and of t's own time limit, which begins with the
// handler.
func (t *Task) Deadline() (deadline time.Time, ok bool) {
	deadline = t.origin().deadline
	return deadline, !deadline.IsZero()
}

// Done returns a channel that is closed when t's context is cancelled. It is the
// same one every time. The first call makes the inner scope and a standard
// context.
func (t *Task) Done() <-chan struct{} { return t.Scope().context().Done() }

// Err returns nil until t's context is cancelled, and then always the same. It
// costs the same at any depth, but that the first answer after a cancellation may
// ask one owner after another. It makes nothing, and starts nothing: what follows
// from a cancellation is the affair of whatever has cancelled.
//
// A worker of package scheduler asks before each task, most often a scope that has a
// standard context and goes on. The answer is found here, in the places and the
// order in which stopped looks three calls further down: measured, a quarter cheaper.
func (t *Task) Err() error {
	if s := t.Inner.Load(); s != nil {
		if std := s.std.Load(); std != nil && s.Why.Load() == nil && !s.young.Load() && std.Err() == nil {
			return nil
		}
	}
	if stop := t.Stopped(); stop != nil {
		return stop.Err
	}
	return nil
}

// Value looks a key up in the ctx that t was started with. Two keys are its own:
// that of package context, see cancelCtxKey, and that by which we find the task
// that a derived context belongs to.
func (t *Task) Value(key any) any {
	if key == cancelCtxKey {
		return cancelCtx(t.Scope())
	}
	if key == (scopeKey{}) {
		return t
	}
	if values := t.origin().values; values != nil {
		return values.Value(key)
	}
	return nil
}

// String names t where a context is printed.
func (t *Task) String() string { return "async." + t.Name() }

// scopeKey is the key under which a context shows the task it belongs to.
type scopeKey struct{}

// Nearest returns the task that ctx belongs to, nil if there is none, and ctx itself if that
// says more: nil if it is the task's own context or, without a task, the background.
func Nearest(ctx context.Context) (t *Task, derived context.Context) {
	if t, isTask := ctx.(*Task); isTask {
		return t, nil
	}
	if ctx == nil {
		panic(crash.Misuse("nil context: pass the ctx you were given, or context.Background()"))
	}
	if ctx == context.Background() {
		return nil, nil
	}
	t, _ = ctx.Value(scopeKey{}).(*Task)
	return t, ctx
}

// Scope returns t's inner scope, making it if need be.
func (t *Task) Scope() *Scope {
	if h := t.Inner.Load(); h != nil {
		return h
	}
	return t.makeScope()
}

// makeScope makes t's inner scope. A cancellation of the owner walks to the inner
// scopes that exist; one that is made later looks. The owner stores why before it
// walks, and we store the inner scope before we look: one of the two sees the
// other.
//
// Before it can be found, t asks its owner when it is asked whether it is
// stopped; after our look the inner scope knows. Between the two, while it is
// young, it asks the owner as t did: or t would say that it is stopped, and a
// moment later that it is not.
func (t *Task) makeScope() *Scope {
	h := newScope(t)
	h.young.Store(true)
	if stop := t.Stopped(); stop != nil {
		h.Why.Store(stop) // what its context has said it goes on to say
	}
	if !t.Inner.CompareAndSwap(nil, h) {
		return t.Inner.Load()
	}
	h.listenAbove()
	h.young.Store(false)
	return h
}

// notifyLocked tells all waits under the context of s that it is done.
func notifyLocked(s *Scope) {
	if w := s.parker.Load(); w != nil {
		w.notify(gotStop)
	}
	for w := s.listeners; w != nil; w = w.lnext {
		if !w.deaf {
			w.notify(gotStop)
		}
	}
}

// SeldomLocked returns what few scopes have, to be set.
func SeldomLocked(s *Scope) *Seldom {
	if s.seldom == nil {
		s.seldom = new(Seldom)
	}
	return s.seldom
}

// seldomOf returns what few scopes have, to be read: nothing for most.
func seldomOf(s *Scope) Seldom {
	if s.seldom == nil {
		return Seldom{}
	}
	return *s.seldom
}

// timersLocked takes the timers of s, to be stopped.
func timersLocked(s *Scope) (timers []*time.Timer) {
	if r := s.seldom; r != nil {
		if timers, r.Timers = r.Timers, nil; r.Alarm != nil {
			timers = append(timers, r.Alarm)
		}
	}
	return timers
}

// Seal cancels the context of an ended scope and takes it off everything it
// is registered with: the context it watches, its timers, and the parker. Functions that it calls
// take other locks, so that is done after unlocking. A cancellation that comes at the same time
// finds Ended, or is the one that counts.
func Seal(s *Scope) {
	s.stopped() // notes it if what cancels s has not come to us yet
	s.Mu.Lock()
	s.Ended = true
	unwatch, timers := s.unwatch, timersLocked(s)
	s.unwatch = nil
	std := s.std.Load()
	s.Why.CompareAndSwap(nil, endedStop)
	s.cancelled = true
	notifyLocked(s)
	s.Mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	if unwatch != nil {
		unwatch()
	}
	if w := s.parker.Load(); w != nil {
		w.disarm()
	}
	if std != nil {
		std.cancel(ErrScopeEnded)
	}
}

// EndUnrun ends the inner scope of t, which never ran, or never had a handler. Most
// often there is none, and from now on none can be made.
func (t *Task) EndUnrun() {
	if !t.Inner.CompareAndSwap(nil, endedScope) {
		Seal(t.Inner.Load())
	}
	t.More.endStops(true)
}
