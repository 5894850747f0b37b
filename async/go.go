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
// be told, if task or ctx is nil, and with [OnDiscard]: a task of Go gives no value.
func Go(ctx context.Context, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Go with a nil function: pass what is to be called")
	}
	t, own := nearest(ctx)
	if t == nil || t.kind == kindRoot {
		panic("async: Go on a context without a scope: call it with the ctx of async.Scope or of a task, " +
			"or use async.Detach; a test has one of asynctest.Context")
	}
	if own {
		ctx = nil
	}
	g := &goTask{handler: task}
	g.t.self, g.t.kind = g, kindGo
	if !start(&g.t, t.scope(), ctx, opts) {
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
	if sg := t.stopped(); sg != nil && (isEcho(err, sg) || inStoppedDaemon(s, sg.cause)) {
		f.Class = tally.Echo
		f.Texts, f.TextsDropped = textsIn(err, echo.Stop{Err: sg.err, Cause: sg.cause})
	}
	return !s.record(&f)
}
