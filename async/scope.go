package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Scope runs body and returns when body and everything started in it have ended: every
// task of the scope and theirs, every abort hook and every exit hook.
//
//	err := async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, audit); return serve(ctx) })
//
// # Details
//
// Scope blocks until then, however long a task ignores its context; see [OnStall] and
// [DetachAfter].
//
// body runs on the calling goroutine. Its ctx is the scope: what is started with it,
// or with a context derived from it, belongs to the scope. The ctx is cancelled when
// ctx is, when body returns an error or panics, when a task started by [Go] fails, and
// when [Timeout] passes; [context.Cause] shows the first of these to everyone below. A
// body that returns nil cancels nothing: its tasks are waited for. After Scope has
// returned the context is cancelled with [ErrScopeEnded].
//
// Scope returns nil, or the failure itself if there was one and there is nothing else
// to say, or a [*ScopeError], which lists the failures, the one that decided first. If
// ctx was cancelled and that kept anything from being done, the error matches both
// ctx.Err and its Cause. Errors of tasks that only repeat why they were cancelled are
// not listed. The failure of a future that nobody awaited is told as an
// [*UnawaitedError], which names the task.
//
// The calling goroutine is alive, so Scope needs no scope around it that is: if that
// of ctx has ended, the new one stands at its root, see [Shutdown]. Only if ctx is
// done, too, Scope returns an error that matches [ErrScopeEnded], without calling
// body. Under [context.WithoutCancel] it is not.
//
// A panic cancels the scope at once and goes on when the rest has ended. The panic of
// body goes on as it was: the same value, with the frames that it came from. The panic
// of a task is raised as a [*PanicError], which has the stack of the task. A body that
// calls runtime.Goexit takes the goroutine with it, once the rest has ended. Each
// failure beside a panic is attached to a [*PanicError]; beside Goexit, or a body's
// panic with any other value, it is told to observers and printed by the root. Scope
// panics if body or ctx is nil. Any number of goroutines may open scopes with one ctx.
//
// The idea is that of Trio's nurseries and of Java's StructuredTaskScope (JEP 505);
// that the context is the scope is our own.
func Scope(ctx context.Context, body func(ctx context.Context) error, opts ...ScopeOption) error {
	if body == nil {
		panic("async: Scope with a nil body: pass what is to be called")
	}
	return tree.RunScope(ctx, body, newScopeOptions(opts), false)
}

// Shield runs f on the calling goroutine with the values of ctx but not its
// cancellation, for clean-up that must happen.
//
//	err := async.Shield(ctx, 5*time.Second, tx.Rollback)
//
// # Details
//
// The context of f lasts d, then it is cancelled with a [*TimeoutError]. With d <= 0
// that time has passed already, and f runs with a context that is done.
//
// Shield blocks until f and everything started in it have ended, also beyond d if they
// ignore their context. It runs f although ctx is done or the scope of ctx has ended.
// Errors and panics are as in [Scope]; a nil f panics.
func Shield(ctx context.Context, d time.Duration, f func(ctx context.Context) error) error {
	if f == nil {
		panic("async: Shield with a nil function: pass what is to be called")
	}
	if d == 0 {
		d = -1 // no time at all, not no limit
	}
	return tree.RunScope(ctx, f, &tree.ScopeOptions{Timeout: d}, true)
}
