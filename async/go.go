package async

import (
	"context"

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
		panic(lateStart(t))
	}
}

// goTask is a task started by Go, Detach, or as a hook.
type goTask struct {
	t       task
	handler func(context.Context) error
	early   *PanicError // the owner was told of, or asked about, this panic when it happened
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

// panicked cancels the owner at once, though what the task has started may take
// long to end. t is that of g, or of its last run.
func (g *goTask) panicked(t *task, p *PanicError) {
	if g.t.kind != kindGo {
		return
	}
	if g.t.owner.asksOnPanic(&g.t) {
		g.askAboutOwn(t, p)
		return
	}
	if h := t.inner.Load(); h != nil {
		h.returned() // no abort hook for its own panic
		p = h.firstPanic(p)
	}
	g.early = p
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
	if t.exit == byPardon {
		err = nil
	}
	sg := t.end(err, &v)
	g.tell(&v)
	if t.exit == byPardon {
		v.err = g.early // whatever the owner was told
	}
	t.observed(&v, sg)
	g.leave(&v)
}

// tell tells whom it concerns how g has ended.
func (g *goTask) tell(v *verdict) {
	t := &g.t
	switch {
	case t.kind == kindHook:
		t.hookEnded(v)
	case t.kind == kindDetached:
		t.owner.home.detachedEnded(v)
	case v.panic != nil && v.panic == g.early: // what came beside it is attached to it
		if v.goexit {
			t.owner.record(&tally.Fact{Class: tally.Goexit, Err: ErrGoexit, GoesOn: true})
		}
	case v.err != nil:
		t.owner.childFailed(t, v)
	case t.leads() && t.exit != byPardon:
		t.lead()
	}
}

// leave ends the membership of g, which has ended with v.
func (g *goTask) leave(v *verdict) {
	t := &g.t
	t.move(stateDone)
	t.leave()
	if t.kind == kindDetached && v.panic != nil {
		panic(v.panic) // nobody to re-raise it: the process ends, as with a bare goroutine
	}
}
