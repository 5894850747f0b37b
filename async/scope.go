package async

import (
	"context"
	"runtime"
	"time"
)

// Scope runs body and returns when body and everything started in it have
// ended: every task of the scope and theirs, every abort hook and every exit
// hook. It blocks until then, however long a task ignores its context; see
// [OnStall] and [DetachAfter].
//
// body runs on the calling goroutine. Its ctx is the scope: what is started
// with it, or with a context derived from it, belongs to the scope. The ctx is
// cancelled when ctx is, when body returns an error or panics, when a task
// started by [Go] fails, and when [Timeout] passes; [context.Cause] shows the
// first of these to everyone below. A body that returns nil cancels nothing:
// its tasks are waited for. After Scope has returned the context is cancelled
// with [ErrScopeEnded].
//
// Scope returns nil, or the failure itself if there was one and there is nothing
// else to say, or a [*ScopeError], which lists the failures, the one that decided
// first. If ctx was cancelled and that kept anything from being done, the error
// matches both ctx.Err and its Cause. Errors of tasks that only repeat why they
// were cancelled are not listed. The failure of a future that nobody awaited is told
// as an [*UnawaitedError], which names the task.
//
// The calling goroutine is alive, so Scope needs no scope around it that is: if
// that of ctx has ended, the new one stands at its root, see [Shutdown]. Only
// if ctx is done, too, Scope returns an error that matches [ErrScopeEnded],
// without calling body. Under [context.WithoutCancel] it is not.
//
// A panic cancels the scope at once and goes on when the rest has ended. That of
// body goes on as it was: the same value, with the frames that it came from. That
// of a task is raised as a [*PanicError], which has the stack of the task. A body
// that calls runtime.Goexit takes the goroutine with it, once the rest has ended.
// What has failed beside a panic is attached to a [*PanicError]; beside Goexit, or
// a body's panic with any other value, it is told to observers and printed by the
// root. Scope panics if body or ctx is nil. Any number of goroutines may open
// scopes with one ctx.
//
// The idea is that of Trio's nurseries and of Java's StructuredTaskScope (JEP
// 505); that the context is the scope is our own.
func Scope(ctx context.Context, body func(ctx context.Context) error, opts ...ScopeOption) error {
	if body == nil {
		panic("async: Scope with a nil body: pass what is to be called")
	}
	return runBody(ctx, body, newScopeOptions(opts), false)
}

// Shield runs f on the calling goroutine with the values of ctx but not its
// cancellation, for clean-up that must happen: its context lasts d, then it is
// cancelled with a [*TimeoutError]. With d <= 0 that time has passed already, and
// f runs with a context that is done.
//
// Shield blocks until f and everything started in it have ended, also beyond d if
// they ignore their context. It runs f although ctx is done or the scope of ctx
// has ended. Errors and panics are as in [Scope]; a nil f panics.
func Shield(ctx context.Context, d time.Duration, f func(ctx context.Context) error) error {
	if f == nil {
		panic("async: Shield with a nil function: pass what is to be called")
	}
	if d == 0 {
		d = -1 // no time at all, not no limit
	}
	return runBody(ctx, f, &scopeOptions{timeout: d}, true)
}

// bodyScope is a Scope call: its task and its inner scope in one piece.
type bodyScope struct {
	t task
	s scope
}

// openBody makes a scope for a body that is to run on this goroutine. That
// goroutine is alive, so the body may run although the scope of ctx has ended:
// it stands at the root then. The error is not nil if ctx is done, too, and the
// body is not shielded from that.
func openBody(ctx context.Context, o *scopeOptions, shielded bool) (*scope, error) {
	outer, own := nearest(ctx)
	given := ctx
	if own || ctx == context.Background() {
		given = nil // it tells no more than its task does
	}
	owner := ownerOf(outer)
	s := newBody(owner, given, o, shielded)
	if !enroll(s) {
		// The context of a scope that has ended is done, or about to be.
		if !shielded && (given == nil || ctx.Err() != nil || endsWith(owner, ctx)) {
			return nil, lateStart(outer, "a Scope in it")
		}
		s = newBody(&outer.home().s, ctx, o, shielded)
		enroll(s) // a root does not end
	}
	if o != nil {
		startClocks(s)
	}
	return s, nil
}

// startClocks is called when s, which has options, is open: from here on its time limit
// and its stoppers count.
func startClocks(s *scope) {
	if s.opts.timeout != 0 {
		s.limitTime(s.opts.timeout)
	}
	s.t.watchStops()
}

// newBody returns the scope of a body that is to stand in owner. ctx is nil if
// it is opened with the owner's own.
func newBody(owner *scope, ctx context.Context, o *scopeOptions, shielded bool) *scope {
	b := new(bodyScope)
	t, s := &b.t, &b.s
	t.kind, t.owner = kindBody, owner
	if ctx != nil || shielded || o != nil || owner.observers != nil {
		t.more = &more{shielded: shielded}
		if o != nil {
			t.more.name, t.more.timeout = o.name, o.timeout
			t.more.stopBy(o.stops)
		}
		t.setOrigin(ctx)
	}
	s.t = t
	s.inherit(owner)
	s.slot = owner.slot // it runs on the same goroutine
	if o != nil {
		setOptions(s, o)
	}
	t.inner.Store(s)
	return s
}

// setOptions is called when s is made, after it has inherited what its owner has.
func setOptions(s *scope, o *scopeOptions) {
	s.opts = o
	outer := s.limit
	if o.limit > 0 {
		s.limit = newLimiter(o.limit, outer)
	}
	if outer != nil && s.limit == outer && o.detaches() {
		s.limit = layerIn(outer)
	}
	if o.on != nil {
		s.on = o.on
	}
	if o.observer != nil {
		s.observers = &observers{o.observer, s.observers}
	}
}

// enroll makes the task of s, which has its inner scope from the first, a
// member of its owner; false if that has ended.
func enroll(s *scope) bool {
	t := s.t
	if !t.owner.add(t) {
		return false
	}
	s.listenAbove()
	return true
}

// openWithoutHandler makes s the scope of t, which no handler stands behind but
// what is started in s, and t a member of the scope of ctx; an error if that has
// ended.
func openWithoutHandler(s *scope, ctx context.Context, t *task, m *more) error {
	outer := standIn(s, ctx, t, m)
	if !enroll(s) {
		return lateStart(outer, t.naming().in(nil))
	}
	return nil
}

// standIn makes s the scope of t, which nothing knows of yet and no handler stands
// behind. It returns the task that ctx belongs to.
func standIn(s *scope, ctx context.Context, t *task, m *more) (outer *task) {
	outer, own := nearest(ctx)
	if own || ctx == context.Background() {
		ctx = nil
	}
	owner := ownerOf(outer)
	t.owner, t.more = owner, m
	t.setOrigin(ctx)
	s.t = t
	s.inherit(owner)
	t.inner.Store(s)
	return outer
}

// runBody is Scope and Shield.
func runBody(ctx context.Context, body func(context.Context) error, o *scopeOptions, shielded bool) (err error) {
	s, err := openBody(ctx, o, shielded)
	if err != nil {
		return err
	}
	tellStart(s.t)
	r := bodyRun{s: s}
	defer r.end(&err) // also on Goexit, which stays one
	r.call(s.t, body)
	nilPanic(&r.exit)
	return nil // replaced by end
}

// bodyRun is one call of a body.
type bodyRun struct {
	s      *scope
	exit   exitKind
	err    error // what the body returned, or its *PanicError
	raised bool  // the scope has ended in the frame in which its body panicked
}

// call calls the body. A panic of it goes on as it was, after everything else
// has ended: the scope is joined here, in the deferred call that has recovered
// it, so the frames it came from are still below when it is raised again. That
// the body called Goexit is seen from not coming back.
func (r *bodyRun) call(t *task, body func(context.Context) error) {
	defer func() {
		if value := recover(); value != nil {
			r.exit, r.err = byPanic, trap(t, value)
			r.raise(value)
		} else if r.exit != byReturn {
			r.err = trap(t, nil) // see caught
		}
	}()
	r.err = body(t)
	runtime.KeepAlive(t) // so that a traceback prints it, see takeLook
	r.exit = byReturn
}

// raise ends the scope of a body that has panicked with value, and panics: with
// the same value, or with the panic of a task if that came first.
func (r *bodyRun) raise(value any) {
	r.raised = true
	var v verdict
	r.s.finish(r.exit, r.err, &v)
	r.leave(&v)
	own := r.err.(*PanicError)
	if v.panic.of != own.of {
		panic(v.panic.raise())
	}
	// The value cannot tell what went wrong beside it.
	if beside := joined(r.s.t, v.panic.Also[len(own.Also):], v.panic.dropped-own.dropped); beside != nil {
		r.s.home.report(beside)
	}
	panic(value)
}

// end joins what the body has started and turns the outcome into what Scope
// returns, or panics.
func (r *bodyRun) end(err *error) {
	if r.raised {
		return
	}
	if r.exit == byGoexit {
		r.err = ErrGoexit
	}
	var v verdict
	defer r.rescue()
	r.s.finish(r.exit, r.err, &v)
	r.leave(&v)
	if v.panic != nil {
		panic(v.panic.raise())
	}
	if r.exit == byGoexit && v.err != error(ErrGoexit) { // there is nobody to return it to
		r.s.home.report(v.err)
	}
	*err = v.err
}

// rescue is [task.rescue] for a body, whose goroutine is the caller's.
func (r *bodyRun) rescue() {
	if t := r.s.t; t.state.Load() != stateDone {
		t.endUnrun()
		t.move(stateDone)
		t.leave()
	}
}

// leave ends the membership of the scope, which has ended with v.
func (r *bodyRun) leave(v *verdict) {
	t := r.s.t
	tellEnd(t, v, r.s.signal())
	t.move(stateDone)
	t.leave()
}
