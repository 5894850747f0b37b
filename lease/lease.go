package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Lease is something that was granted for a [Term] and is renewed by a [Keeper], which
// returns it from Keep. Any number of goroutines may use one.
//
// A lease has two ends. Its *belief* ends when the term is over, when the store has said
// that it is lost, or when the owner calls [Lease.End]; the first of these counts, and
// the contexts of the lease are done from then on. Its *hold* ends when the owner lets go,
// by [Lease.Release]. Between an End and a Release the keeper goes on to renew, because
// the owner may have to settle with the store what it did. A lease that is over or lost is
// given up: the keeper renews it never again.
type Lease struct {
	keeper owner
	clock  *Clock
	set    leaseSettings

	until atomic.Int64        // the belief lasts until then; written under mu, grows only
	ended atomic.Pointer[end] // set once, under mu; nil: the holder believes, if the clock agrees

	mu       sync.Mutex
	term     Term                // the one that ends last of those that were granted
	tries    int                 // renewals sent since the last success
	failure  error               // of the last renewal that had none
	contexts map[*bound]struct{} // nil after the end
	flights  []*flight           // calls on their way that renew it
	left     bool                // it needs none of these any more
}

// An owner is what a lease needs of its keeper, whatever the keeper's type.
type owner interface {
	forget(l *Lease, tell func())
	renewNow(ctx context.Context, l *Lease, length time.Duration) error
}

// An end is how the belief in a lease has ended.
type end struct {
	reason error // ErrOver, ErrLost or ErrEnded
	cause  error // what contexts are cancelled with
	own    bool  // the owner of the lease has ended it, and not the keeper
}

// Err returns nil while the holder believes, and the cause from then on.
//
//	if err := l.Err(); err != nil {
//		return err // before each write
//	}
//
// # Details
//
// Err reads the clock and asks nobody, so call it before each write to something else: a
// process that was stopped and goes on is told by Err first.
//
// The cause is an [*Error] that matches [ErrOver], [ErrLost] or [ErrEnded], or what
// [CauseOf] has made of it.
func (l *Lease) Err() error {
	for {
		if e := l.ended.Load(); e != nil {
			return e.cause
		}
		if int64(l.clock.Now()) < l.until.Load() {
			return nil
		}
		l.finish(&Error{Reason: ErrOver}) // not if a renewal has come in the meantime
	}
}

// Term returns the last term that the store is known to have granted, on the clock of the
// keeper. It says until when the holder believes if no renewal succeeds, and from when
// the store may grant the thing to another.
func (l *Lease) Term() Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// Remaining returns how long the holder still believes if no renewal succeeds; 0 if it
// does not.
func (l *Lease) Remaining() time.Duration {
	if l.Err() != nil {
		return 0
	}
	return max(time.Duration(l.until.Load())-l.clock.Now(), 0)
}

// Extend has the lease renewed at once, for d from now, and waits for the answer.
//
//	err := l.Extend(ctx, time.Minute) // before a step that must not be cut short
//
// # Details
//
// With a d of 0 or less the lease is renewed for its usual length. Later renewals ask for
// the usual length again.
//
// Extend first waits for a renewal that is on its way. It blocks until the renew function,
// which it calls on its own goroutine with a child of ctx, has returned; that ctx is done
// after a sixth of d, when the term is over, or with the ctx of the call. A panic of the
// renew function is raised by Extend.
//
// It returns the cause of a lease that has ended, else what the renew function has said of
// the lease, or the cause of ctx. After an error the belief is what it was: the store may
// have extended the term or not.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if err := l.Err(); err != nil {
		return err
	}
	err := l.keeper.renewNow(ctx, l, d)
	if cause := l.Err(); cause != nil && err != nil {
		return cause // the call was cut short by the end, or the answer is the end
	}
	return err
}

// End ends the belief: the contexts of the lease are done, with a cause that matches
// [ErrEnded], when End returns.
//
//	err := l.End() // nil: the holder has believed until now
//
// # Details
//
// The keeper goes on to renew until [Lease.Release].
//
// End returns nil if the holder has believed until the first call of End, and the cause if
// the lease was over or lost before, or its keeper had ended. The answer is final, so work
// that has ended may decide by it whether its result counts. End does not block.
func (l *Lease) End() error {
	l.endFor(nil)
	if e := l.ended.Load(); !e.own {
		return e.cause
	}
	return nil
}

// Release ends the belief as [Lease.End] does, has no renewal sent from now on, and waits
// until those on their way have returned, or ctx is done.
//
//	err := errors.Join(l.Release(ctx), store.Release(ctx, "report"))
//
// # Details
//
// Give back to the store after Release: a renewal that comes later could extend what
// another holder has by then.
//
// Release returns nil, or the cause of ctx if a renewal was still on its way. It may be
// called any number of times. The keeper has forgotten the lease then.
func (l *Lease) Release(ctx context.Context) error {
	_ = l.End()
	l.keeper.forget(l, nil) // no renewal is sent from now on
	defer l.leave()
	return l.landings(ctx)
}

// Run calls body in an [async.Scope] under the lease, on the calling goroutine, and returns
// when body and all that it has started have ended.
//
//	err := l.Run(ctx, func(ctx context.Context) error { return write(ctx) })
//
// # Details
//
// The ctx of body, and with it the scope, is cancelled with the cause when the belief ends.
// Run does not release the lease. Under a lease that has ended already Run returns the
// cause and does not call body.
//
// Run returns what Scope does. If the belief has ended before the last of the work it
// returns an error that matches the cause, also if body has returned nil: what body did may
// have been done beside another holder.
func (l *Lease) Run(ctx context.Context, body func(ctx context.Context) error, opts ...async.ScopeOption) error {
	if body == nil {
		panic("lease: Run with a nil body: pass what is to be called")
	}
	b := l.bind(ctx) // which asks ctx: a method of the user's may end the lease
	defer b.stop()
	if err := l.Err(); err != nil {
		return err
	}
	err := async.Scope(b, func(ctx context.Context) error { return body(watched{ctx, b}) }, opts...)
	switch cause := l.Err(); {
	case cause == nil || errors.Is(err, cause):
		return err
	case err == nil:
		return cause
	default:
		return errors.Join(cause, err)
	}
}

// endFor ends the belief as its owner does, because of err, unless it is over or lost.
func (l *Lease) endFor(err error) {
	for l.Err() == nil && !l.finish(&Error{Reason: ErrEnded, Err: err}) {
	}
}

// answered notes the answer to a renewal. A term that the store has granted counts from
// its own start, also if the answer comes late; but it brings nothing back.
func (l *Lease) answered(r request) {
	_ = l.Err() // the belief ends first if its time had run out before the answer came
	switch r.verdict {
	case granted:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tries, l.failure = 0, nil
		if r.term.End() > l.term.End() {
			l.term = r.term
		}
		if until := int64(r.term.Believed()); l.ended.Load() == nil && until > l.until.Load() {
			l.until.Store(until)
		}
	case lost:
		l.finish(&Error{Reason: ErrLost, Err: r.err})
	default:
		l.failedWith(r.err)
	}
}

// failedWith notes what a renewal has failed with.
func (l *Lease) failedWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// givenUp reports whether the lease is over or lost: it is not renewed any more.
func (l *Lease) givenUp() bool {
	e := l.ended.Load()
	return e != nil && e.reason != ErrEnded
}

// finish ends the belief for the reason of e, unless it has ended, and reports whether it
// did. Contexts are done when finish returns.
func (l *Lease) finish(e *Error) bool {
	l.mu.Lock()
	if e.Tries = l.tries; e.Reason == ErrOver {
		e.Err = l.failure
	}
	l.mu.Unlock()
	cause := l.set.causeOf(e) // of the user, so without the lock
	l.mu.Lock()
	// The renewal that extends the belief writes until under mu: either it comes first, and
	// the term is not over, or it finds ended and extends nothing.
	late := int64(l.clock.Now()) >= l.until.Load()
	if l.ended.Load() != nil || e.Reason == ErrOver && !late || e.Reason == ErrEnded && late {
		l.mu.Unlock()
		return false
	}
	l.ended.Store(&end{e.Reason, cause, e.Reason == ErrEnded && e.Err == nil})
	contexts := l.contexts
	l.contexts = nil
	l.mu.Unlock()
	for b := range contexts {
		b.cancel(cause)
	}
	if e.Reason != ErrEnded {
		l.giveUp(cause)
	}
	return true
}

// giveUp has the lease renewed no more, because it is over or lost.
func (l *Lease) giveUp(cause error) {
	var tell func()
	if f := l.set.lost; f != nil {
		tell = func() { f(cause) }
	}
	l.keeper.forget(l, tell)
	l.leave()
}

// causeOf returns what contexts are cancelled with. A panic of the user's function must
// not keep the contexts alive, so it becomes a part of the text.
func (s *leaseSettings) causeOf(e *Error) (cause error) {
	if s.cause == nil {
		return e
	}
	defer func() {
		if v := recover(); v != nil {
			cause = fmt.Errorf("%w (the function of CauseOf panicked: %v)", e, v)
		}
	}()
	if cause = s.cause(e); cause == nil {
		return e
	}
	return cause
}
