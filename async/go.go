package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// Go starts task in the scope of ctx, on a goroutine of its own.
//
//	async.Go(ctx, func(ctx context.Context) error { return serve(ctx, conn) })
//
// # Details
//
// Go does not block, but for an executor ([On]) that does. The scope joins the task.
//
// The context of task is a child of ctx: it is cancelled with the cause of ctx, and
// with [ErrScopeEnded] when the task has settled. Under [context.WithoutCancel] it is
// not cancelled with the scope. On a scope that is cancelled but has not ended the
// task still runs, with a context that is done, unless it has to queue for a slot of a
// [Limit].
//
// An error of task, [ErrGoexit] included, fails the scope, which is cancelled with
// that error; see [OnFailure]. A panic cancels the scope at once, and [Scope] raises
// it as a [*PanicError]. The code before the call of Go happens before task; the work
// of task happens before Scope returns.
//
// Go panics if ctx carries no scope or one that has ended, because nobody would be
// told, if task or ctx is nil, and with [OnDiscard]: a task of Go gives no value.
func Go(ctx context.Context, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Go with a nil function: pass what is to be called")
	}
	t, ctx := tree.Nearest(ctx)
	if t == nil || t.Kind == tree.KindRoot {
		panic("async: Go on a context without a scope: call it with the ctx of async.Scope or of a task, " +
			"or use async.Detach; a test has one of asynctest.Context")
	}
	g := &tree.GoTask{Handler: task}
	g.Task.Self, g.Task.Kind = g, tree.KindGo
	s, started := t.Scope(), false
	if isPlain(s, ctx, opts) {
		started = g.Task.Start(s)
	} else {
		started = startWith(&g.Task, s, ctx, opts)
	}
	if !started {
		panic(tree.LateStart(t, g.Task.Naming().In(nil)))
	}
}

// Fail fails the scope of ctx with err, at once, as a [Go] task of it would that
// returns err.
//
//	conn.OnClose(func(err error) { async.Fail(ctx, err) })
//
// # Details
//
// The scope is cancelled with err, and [Scope] returns it. Fail is for callbacks,
// which have nobody to return an error to. [OnFailure] is not asked. An err that only
// repeats why the scope was cancelled is no failure.
//
// Fail does not block, and reports false if the scope has ended: then nobody is told.
// It panics if err or ctx is nil, and if ctx carries no scope. Any number of
// goroutines may call it.
func Fail(ctx context.Context, err error) bool {
	if err == nil {
		panic("async: Fail with a nil error: say why the scope is to fail")
	}
	t, _ := tree.Nearest(ctx)
	if t == nil || t.Kind == tree.KindRoot {
		panic("async: Fail on a context without a scope: call it with the ctx of async.Scope or of a task")
	}
	s := t.Scope()
	f := tally.Fact{Err: err}
	if stop := tree.StoppedByNow(t); stop != nil && (tree.IsEcho(err, stop) || tree.InStoppedDaemon(s, stop.Cause)) {
		f.Class = tally.Echo
		f.Texts, f.TextsDropped = tree.TextsIn(err, echo.Stop{Err: stop.Err, Cause: stop.Cause})
	}
	return !s.Record(&f)
}

// OnPanic asks f about the panic of every [Go] task of the scope, when the task and
// what it has started have ended.
//
//	async.Scope(ctx, serve, async.OnPanic(func(p *async.PanicError) error { log.Print(p); return nil }))
//
// # Details
//
// The error that f returns decides:
//
//   - nil: the scope carries on, as a server does when one handler panics.
//   - the same p: the scope is cancelled and raises it, as without the option.
//   - another error, also one that wraps p: the scope fails with that error. It is
//     returned by [Scope] as the error of a task is, and nothing is raised.
//
// Until f has answered nothing around the task is cancelled; what the task has started
// is at once. If f returns nil, what else went wrong in the task counts as if the task
// had ended with it: f is asked about another panic, [OnFailure] about errors. Its
// exit hooks ([OnExit]) are told of p: it has not ended well.
//
// f is called on a goroutine of its own, with no lock held. Several goroutines may
// call f at once. If f itself panics or calls runtime.Goexit, that is an error of the
// scope, and p is raised.
//
// Observers are told of every panic, whatever f says. f is not asked about panics of
// the body, of futures ([Execute], [Start] and the like) and of hooks; for errors
// there is [OnFailure]. A nil f panics.
//
// A handler of net/http that panics does not end its server: that is the model.
func OnPanic(f func(p *PanicError) error) ScopeOption {
	if f == nil {
		panic("async: OnPanic(nil): leave the option out instead")
	}
	return scopeOption(func(s *tree.ScopeOptions) {
		s.OnPanic = func(p error) error { return f(p.(*PanicError)) }
	})
}

// OnFailure asks f about the error of every Go task that fails.
//
//	async.Scope(ctx, serve, async.OnFailure(func(err error) error { log.Print(err); return nil }))
//
// # Details
//
// Where f returns nil the scope carries on, as a server does when one connection
// fails; an error fails the scope with it. f may be called by several goroutines at
// once, with no lock held. It is not asked about panics, Goexit, or tasks that ended
// because the scope was cancelled. If f itself panics, that and the error it was asked
// about are the scope's. A nil f panics.
func OnFailure(f func(error) error) ScopeOption {
	if f == nil {
		panic("async: OnFailure(nil): leave the option out instead")
	}
	return scopeOption(func(s *tree.ScopeOptions) { s.OnFailure = f })
}

// Leader marks a task that the scope is there for, the inverse of [Daemon].
//
//	async.Go(ctx, run, async.Leader())
//
// # Details
//
// When a leader has ended without a failure, and all that it started with it, the body
// and the tasks of its scope are cancelled with [ErrDismissed]. So ends a program
// whose servers stop with the first of them.
//
// A task or body that was told to stop has not failed: if it only repeats that, as one
// that returns its ctx's error, it does not count, and neither does a task that was
// queued and did not run: then [Scope] returns nil. Other errors count as ever. A wait
// under the ctx of the scope is told ErrDismissed; who waits for the leader gets its
// value. To everybody else the scope is cancelled: what [package jobqueue] took in it
// goes back.
//
// The failure of a leader is treated as that of any task. The first leader to end
// leads; those that end later, or when the scope was cancelled by something else, are
// ordinary tasks. So is one whose error or panic does not count because [OnFailure] or
// [OnPanic] says so, a daemon that was told that the scope is done, and a task that
// belongs to no scope. A promise leads when it is resolved, a task with [Restart] when
// it has ended for good.
//
// Led is the scope that the task was started in. It may be a task: then the handler of
// that task is the body. If that is to give a value, the error that it returns because
// it was cancelled is its outcome, for there is no value.
//
// The model is oklog/run.
//
// [package jobqueue]: https://pkg.go.dev/github.com/ambit-go/ambit/jobqueue
func Leader() TaskOption {
	return taskOption(func(t *tree.TaskOptions) { t.Leader = true })
}

// Daemon marks a task that serves the others: when the body and all ordinary tasks of
// its scope have ended it is cancelled with [ErrDismissed], and then joined like any
// other.
//
//	async.Go(ctx, reportProgress, async.Daemon())
//
// # Details
//
// An error that a daemon, or anything started in it, returns after its scope has
// cancelled it, by that or otherwise, is not a failure: "http: Server closed" and
// "signal: killed" are how services stop. Observers are told of it. A panic raises as
// that of any task; an error from before, and its own [Timeout] or [Heartbeat], are
// failures. An error that must be heard belongs in an exit hook, its own or that of
// anything in it; see [OnExit].
func Daemon() TaskOption { return taskOption(func(t *tree.TaskOptions) { t.Daemon = true }) }
