package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
)

// Go starts task in the scope of ctx, on a goroutine of its own. It does not
// block, but for an executor ([On]) that does. The scope joins the task.
//
// The context of task is a child of ctx: it is cancelled with the cause of ctx,
// and with [ErrScopeEnded] when the task has settled. Under
// [context.WithoutCancel] it is not cancelled with the scope. On a scope that is
// cancelled but has not ended the task still runs, with a context that is done.
//
// An error of task, [ErrGoexit] included, fails the scope, which is cancelled
// with that error; see [OnFailure]. A panic cancels the scope at once, and
// [Scope] raises it as a [*PanicError]. What happens before the call of Go happens
// before task; what task did happens before Scope returns.
//
// Go panics if ctx carries no scope or one that has ended, because nobody would
// be told, and if task or ctx is nil.
func Go(ctx context.Context, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Go with a nil function: pass what is to be called")
	}
	t, own := nearest(ctx)
	if t == nil || t.kind == kindRoot {
		panic("async: Go on a context without a scope: call it with the ctx of async.Scope or of a task, or use async.Detach; a test has one of asynctest.Context")
	}
	if own {
		ctx = nil
	}
	g := &goTask{handler: task}
	g.t.self, g.t.kind = g, kindGo
	if !g.t.start(t.scope(), ctx, opts) {
		panic(lateStart(t, g.t.naming().in(nil)))
	}
}

// Fail fails the scope of ctx with err, at once, as a [Go] task of it would that returns
// err: the scope is cancelled with err, and [Scope] returns it. That is for callbacks,
// which have nobody to return an error to. [OnFailure] is not asked. An err that only
// repeats why the scope was cancelled is no failure.
//
//	conn.OnClose(func(err error) { async.Fail(ctx, err) })
//
// Fail does not block, and reports false if the scope has ended: then nobody is told. It
// panics if err or ctx is nil, and if ctx carries no scope. Any number of goroutines may
// call it.
func Fail(ctx context.Context, err error) bool {
	if err == nil {
		panic("async: Fail with a nil error: say why the scope is to fail")
	}
	t, _ := nearest(ctx)
	if t == nil || t.kind == kindRoot {
		panic("async: Fail on a context without a scope: call it with the ctx of async.Scope or of a task")
	}
	s := t.scope()
	f := tally.Fact{Err: err}
	if sg := t.stopped(); sg != nil && (isEcho(err, sg) || s.inStoppedDaemon(sg.cause)) {
		f.Class = tally.Echo
		f.Texts, f.TextsDropped = textsIn(err, echo.Stop{Err: sg.err, Cause: sg.cause})
	}
	return !s.record(&f)
}

// goTask is a task started by Go, Detach, or as a hook.
type goTask struct {
	t       task
	handler func(context.Context) error
	early   bool // the owner was told when the handler panicked
}

func (g *goTask) fn() any         { return g.handler }
func (g *goTask) future() *future { return nil }

// unrun ends a task that never ran.
func (g *goTask) unrun(v *verdict) {
	t := &g.t
	if t.kind == kindDetached {
		t.owner.home.detachedEnded(v)
	} else {
		t.owner.childFailed(t, v)
	}
	t.move(stateDone)
	t.leave()
}

// run is the body of the task's goroutine.
func (g *goTask) run() {
	var err error
	defer func() { g.finish(err) }() // also on Goexit
	g.call(&err)
	nilPanic(&g.t.exit)
	if g.t.exit == byPanic {
		g.panicked(&g.t, err.(*PanicError))
	}
}

func (g *goTask) givesNothing() bool    { return true }
func (g *goTask) runOnce(t *task) error { return g.handler(t) }
func (g *goTask) drop(bool)             {}

func (g *goTask) endRuns(exit exitKind, err error, _ bool) {
	g.t.exit = exit
	g.t.retire() // who is asked about the failure is no part of the handler
	g.finish(err)
}

// panicked cancels the owner at once, though what the task has started may take
// long to end; not if OnPanic is to be asked first, when that has ended. t is the task
// of g, or of its last run.
func (g *goTask) panicked(t *task, p *PanicError) {
	if g.t.kind != kindGo || g.t.owner.asksOnPanic(&g.t) {
		return
	}
	if h := t.inner.Load(); h != nil {
		h.returned() // no abort hook for its own panic
	}
	g.early = true
	g.t.owner.record(&tally.Fact{Class: tally.Panic, Err: p})
}

func (g *goTask) call(err *error) {
	defer func() { caught(&g.t, recover(), &g.t.exit, err) }()
	g.t.enter()
	*err = g.handler(&g.t)
	g.t.exit = byReturn
}

// finish joins what the handler has started and tells the owner how it ended.
func (g *goTask) finish(err error) {
	t := &g.t
	var v verdict
	sg := t.end(err, &v)
	g.tell(err, &v)
	t.observed(&v, sg)
	g.leave(&v)
}

// tell tells whom it concerns how g has ended, whose handler has returned err.
func (g *goTask) tell(err error, v *verdict) {
	t := &g.t
	switch {
	case t.kind == kindHook:
		t.hookEnded(v)
	case t.kind == kindDetached:
		t.owner.home.detachedEnded(v)
	case g.early && v.panic != nil:
		g.tellBeside(err.(*PanicError), v.panic)
	case v.err != nil:
		t.owner.childFailed(t, v)
	case t.leads():
		t.lead()
	}
}

// tellBeside tells the owner, which was told of own when the handler panicked, what
// else went wrong in g, which has ended with p.
func (g *goTask) tellBeside(own, p *PanicError) {
	if p.raised {
		return
	}
	errs := p.Also
	if !p.Is(own) {
		errs = append([]error{p}, errs...)
	}
	if len(errs)+p.dropped > 0 {
		g.t.owner.record(&tally.Fact{Err: p, Errs: errs, Dropped: p.dropped, GoesOn: true})
	}
}

// leave ends the membership of g, which has ended with v.
func (g *goTask) leave(v *verdict) {
	t := &g.t
	t.move(stateDone)
	t.leave()
	if t.kind == kindDetached && v.panic != nil {
		panic(v.panic.raise()) // nobody to re-raise it: the process ends, as with a bare goroutine
	}
}
