package async

import (
	"context"
	"sync"
	"sync/atomic"
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
// Scope returns nil, or the failure if there was one, or a [*ScopeError] whose
// first error is the one that decided. If ctx was cancelled and that kept
// anything from being done, the error matches both ctx.Err and its Cause. On a
// ctx whose scope has ended it returns ErrScopeEnded without calling body.
//
// A panic of body or of a task cancels the scope at once; when the rest has
// ended Scope panics with a [*PanicError]. A body that calls runtime.Goexit
// takes the goroutine with it, once the rest has ended.
//
// The idea is that of Trio's nurseries and of Java's StructuredTaskScope (JEP
// 505); that the context is the scope is our own.
func Scope(ctx context.Context, body func(ctx context.Context) error, opts ...ScopeOption) error {
	if body == nil {
		panic("async: Scope with a nil body")
	}
	var o *scopeOptions
	if len(opts) > 0 {
		o = new(scopeOptions)
		for _, opt := range opts {
			opt.applyScope(o)
		}
	}
	return runBody(ctx, body, o, false)
}

// Shield runs f on the calling goroutine with the values of ctx but not its
// cancellation, for clean-up that must happen: its context lasts d, then it is
// cancelled with a [*TimeoutError]. What f starts belongs to the shielded
// stretch and has ended when Shield returns. Errors and panics are as in
// [Scope].
func Shield(ctx context.Context, d time.Duration, f func(ctx context.Context) error) error {
	if f == nil {
		panic("async: Shield with a nil function")
	}
	if d == 0 {
		d = -1 // no time at all, not no limit
	}
	return runBody(ctx, f, &scopeOptions{timeout: d}, true)
}

// Go starts task in the scope of ctx, on a goroutine of its own. It does not
// block. The context of task is a child of ctx and of the scope. An error of
// task, [ErrGoexit] included, fails the scope, which cancels it; so does a
// panic. Go panics if ctx carries no scope or one that has ended, because
// nobody would be told.
func Go(ctx context.Context, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Go with a nil function")
	}
	t, own := nearest(ctx)
	if t == nil || t.kind == kindRoot {
		panic("async: Go on a context without a scope: call it with the ctx of async.Scope or of a task, or use async.Detach")
	}
	if own {
		ctx = nil
	}
	g := &goTask{handler: task}
	g.t.self, g.t.kind = g, kindGo
	if !g.t.start(t.scope(), ctx, opts) {
		panic("async: Go on a scope that has ended: " + t.name())
	}
}

// A scope is what a task, a body or a root needs to own others: who they are,
// what went wrong, and why it was cancelled.
type scope struct {
	t         *task // the task this is the scope half of
	home      *root // the root of the tree
	limit     *limiter
	observers *observers
	opts      *scopeOptions // nil: all defaults
	depth     int32         // how many scopes are around it

	sig    atomic.Pointer[signal]     // why it is cancelled; set once, under mu
	std    atomic.Pointer[stdContext] // made when somebody asks for Done; set once, under mu
	parker atomic.Pointer[waiter]     // one idle waiter, to be used again

	hooking   atomic.Int32 // abort hooks that run
	mu        sync.Mutex   // guards what follows; held briefly, never while user code runs
	children  *task        // everything that has not settled, promises left out
	promises  *task        // those nobody has resolved; they hold nothing up
	live      int          // children
	daemons   int          // children that are daemons
	listeners *waiter      // waits under this scope's context, to be told of a cancellation
	joiner    *waiter      // who waits for the children
	changed   chan struct{}
	exits     []exitHook
	faults    *faults // nil until something goes wrong
	unwatch   func()  // takes us off the contexts we watch
	timers    []*time.Timer
	left      *task // at the root; set if Scope has returned without its tasks, the last of which ends it
	ended     bool  // nothing can be started any more
	summed    bool  // the outcome is being made; what fails now is the root's to report
	dismissed bool  // the daemons have been cancelled
	gaveUp    bool  // DetachAfter has passed
	echoed    bool  // a child reported nothing but our cancellation
	skipped   bool  // a queued child was never run
	own       bool  // sig is a failure of ours, listed in faults
}

// newScope returns the scope half of t, with what it inherits.
func newScope(t *task) *scope {
	s := &scope{t: t}
	if o := t.owner; o != nil {
		s.inherit(o)
	}
	return s
}

// signal returns why s was cancelled, nil if it was not before it ended.
func (s *scope) signal() *signal {
	if sg := s.sig.Load(); sg != endedSignal {
		return sg
	}
	return nil
}

// inherit takes over from the owner what holds for everything inside it.
func (s *scope) inherit(o *scope) {
	s.home, s.limit, s.observers, s.depth = o.home, o.limit, o.observers, o.depth+1
}

func (s *scope) task() *task {
	if s == nil {
		return nil
	}
	return s.t
}

// add makes t a child of s. Registering, counting and the ended flag share
// one lock, so a task is either joined or refused.
func (s *scope) add(t *task) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.linkLocked(t)
	s.mu.Unlock()
	return true
}

func (s *scope) linkLocked(t *task) {
	list := &s.children
	if t.kind == kindPromise {
		list = &s.promises
	} else {
		s.live++
		if t.more != nil && t.more.daemon {
			s.daemons++
		}
	}
	if *list != nil {
		(*list).prev = t
	}
	t.next, *list = *list, t
}

// leave takes t off the list and wakes who waits for the last one.
func (s *scope) leave(t *task) {
	s.mu.Lock()
	if t.next != nil {
		t.next.prev = t.prev
	}
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	case s.children == t:
		s.children = t.next
	case s.promises == t:
		s.promises = t.next
	}
	t.next, t.prev = nil, nil
	if t.kind != kindPromise {
		s.live--
		if t.more != nil && t.more.daemon {
			s.daemons--
		}
	}
	if s.joiner != nil && s.live <= s.daemons {
		s.joiner.settled()
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	last := s.left != nil && s.live == 0
	stand := s.left
	if last {
		s.left = nil
	}
	s.mu.Unlock()
	if last {
		go s.bury(stand)
	}
}

// join waits until everything started in s has ended. It reports false if
// DetachAfter has passed before.
func (s *scope) join() bool {
	for {
		s.mu.Lock()
		switch {
		case s.live == 0:
			s.mu.Unlock()
			return true
		case s.gaveUp:
			s.mu.Unlock()
			return false
		case s.live == s.daemons && !s.dismissed:
			s.dismissed = true
			daemons := s.childrenLocked(func(t *task) bool { return t.more != nil && t.more.daemon })
			s.mu.Unlock()
			for _, d := range daemons {
				d.scope().cancel(canceled(ErrScopeDone))
			}
		default:
			s.mu.Unlock()
			s.parkJoiner()
		}
	}
}

// parkJoiner waits until there may be news for join. The waiter is not the
// scope's parker: a bare goroutine that uses our ctx may hold that.
func (s *scope) parkJoiner() {
	w := newWaiter()
	w.slot = s.t.lend()
	s.mu.Lock()
	if s.gaveUp || s.live == 0 || s.live == s.daemons && !s.dismissed {
		w.settled()
	} else {
		s.joiner = w
	}
	s.mu.Unlock()
	w.park()
	s.mu.Lock()
	s.joiner = nil
	s.mu.Unlock()
}

// childrenLocked returns the children that f picks, in the order they came.
func (s *scope) childrenLocked(f func(*task) bool) []*task {
	var some []*task
	for t := s.children; t != nil; t = t.next {
		if f(t) {
			some = append(some, t)
		}
	}
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		some[i], some[j] = some[j], some[i]
	}
	return some
}

// bodyScope is a Scope call: its task and its scope half in one piece.
type bodyScope struct {
	t task
	s scope
}

// openBody makes a scope for a body that is to run on this goroutine, nil if
// the scope of ctx has ended.
func openBody(ctx context.Context, o *scopeOptions, shielded bool) *scope {
	outer, own := nearest(ctx)
	owner := ownerOf(outer)
	b := new(bodyScope)
	t, s := &b.t, &b.s
	t.kind, t.owner = kindBody, owner
	s.t, s.opts = t, o
	s.inherit(owner)
	if !own || shielded || o != nil || owner.observers != nil {
		t.more = &more{shielded: shielded}
		if !own {
			t.more.ctx = ctx
		}
	}
	if o != nil {
		t.more.name, t.more.timeout = o.name, o.timeout
		if o.limit > 0 {
			s.limit = newLimiter(o.limit, owner.limit)
		}
		if o.observer != nil {
			s.observers = &observers{o.observer, owner.observers}
		}
	}
	t.state.Store(stateRunning)
	t.half.Store(s)
	if !owner.add(t) {
		return nil
	}
	if o != nil && o.timeout != 0 {
		s.limitTime(o.timeout)
	}
	if ctx := t.foreign(); ctx != nil {
		s.watch(ctx)
	}
	if sg := t.pull(); sg != nil {
		s.cancel(sg)
	}
	return s
}

// runBody is Scope and Shield.
func runBody(ctx context.Context, body func(context.Context) error, o *scopeOptions, shielded bool) (err error) {
	s := openBody(ctx, o, shielded)
	if s == nil {
		return ErrScopeEnded
	}
	s.t.observe()
	var r bodyRun
	defer func() { err = r.close(s) }() // also on Goexit, which stays one
	r.call(s.t, body)
	if r.how == exited {
		r.how = panicked
	}
	return nil // replaced by close
}

// bodyRun is one call of a body.
type bodyRun struct {
	how how
	err error // what the body returned, or its *PanicError
}

// call calls the body and recovers its panic. That the body called Goexit is
// seen from not coming back.
func (r *bodyRun) call(t *task, body func(context.Context) error) {
	defer func() {
		if r.how != returned {
			r.err = trap(t, recover())
		}
	}()
	r.err = body(t)
	r.how = returned
}

// close joins what the body has started and turns the outcome into what Scope
// returns, or panics.
func (r *bodyRun) close(s *scope) error {
	if r.how == exited {
		r.err = ErrGoexit
	}
	v := s.finish(r.how, r.err)
	s.t.observed(v, s.signal())
	s.t.move(stateDone)
	s.t.leave()
	if v.panic != nil {
		panic(v.panic)
	}
	if r.how == exited && v.err != error(ErrGoexit) {
		s.home.report(v.err) // there is nobody left to return it to
	}
	return v.err
}

// goTask is a task started by Go, Detach, or as a hook.
type goTask struct {
	t       task
	handler func(context.Context) error
}

func (g *goTask) fn() any         { return g.handler }
func (g *goTask) future() *future { return nil }

// skip ends a cancelled task that never ran.
func (g *goTask) skip() {
	t := &g.t
	sg := t.stopped()
	t.scope().seal()
	t.owner.noteSkipped()
	t.owner.childFailed(t, verdict{err: stopped(sg.err, sg.cause), echo: true})
	t.move(stateDone)
	t.leave()
}

// run is the body of the task's goroutine.
func (g *goTask) run() {
	var err error
	defer func() { g.finish(err) }() // also on Goexit
	g.call(&err)
	if g.t.how == exited {
		g.t.how = panicked
	}
}

func (g *goTask) call(err *error) {
	defer func() {
		if g.t.how != returned {
			*err = trap(&g.t, recover())
		}
	}()
	g.t.enter()
	*err = g.handler(&g.t)
	g.t.how = returned
}

// finish joins what the handler has started and tells the owner how it ended.
func (g *goTask) finish(err error) {
	t := &g.t
	v, sg := t.end(err)
	t.observed(v, sg)
	switch {
	case t.kind == kindHook:
		if v.err != nil {
			t.owner.noteHook(v.err)
		}
		t.owner.hooking.Add(-1)
		t.owner.home.stir()
	case t.kind == kindDetached:
		t.owner.home.detachedEnded(v)
	case v.err != nil:
		t.owner.childFailed(t, v)
	}
	t.move(stateDone)
	t.leave()
	if t.kind == kindDetached && v.panic != nil {
		panic(v.panic) // nobody to re-raise it: the process ends, as with a bare goroutine
	}
}
