package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the word OnExit. How its hooks are run is in hooks.go, what they are told is in
// scopeerror.go.

// OnExit registers f to be called when the scope of ctx ends: after every task of it
// has ended, before Scope returns or the task settles.
//
//	async.OnExit(ctx, func(ctx context.Context, outcome error) error {
//		return tx.End(ctx, outcome == nil) // commit, or roll back
//	})
//
// # Details
//
// Hooks are called last in, first out, one at a time, all of them even if some fail or
// panic.
//
// The ctx of f keeps the values of the scope, is not cancelled with it, and lasts 5 s
// unless [HookTimeout] says otherwise; what f starts with it is joined with f. outcome
// is how the scope has gone so far: nil, what [Scope] is going to return or panic
// with, or why the scope was cancelled, although it returns nil; [EndingOf] tells
// these apart. Errors and panics of f are added to the scope's errors and never
// replace one.
//
// stop takes f off the scope, which then keeps nothing that f has captured, and
// returns true: f is not called. It returns false if f has begun, and does not wait
// for f, or if stop has returned true before. Any number of goroutines may call it.
//
// On a scope that has ended f is called at once, on the calling goroutine, with
// [ErrScopeEnded] as the outcome and a ctx as above: it is alive, and what f starts
// with it is joined before OnExit returns. An error of f is reported to the root of
// ctx, which prints it on standard error; a panic of f goes on in the caller.
//
// OnExit panics if f is nil or ctx carries no scope. It does not block, but for what f
// takes on a scope that has ended. Any number of goroutines may call it.
func OnExit(ctx context.Context, f func(ctx context.Context, outcome error) error) (stop func() bool) {
	if f == nil {
		panic("async: OnExit with a nil function: pass what is to be called")
	}
	t, _ := tree.Nearest(ctx)
	if t == nil || t.Kind == tree.KindRoot {
		panic("async: OnExit on a context without a scope: call it with the ctx of async.Scope or of a task")
	}
	s := t.Scope()
	s.Mu.Lock()
	if !s.Ended {
		x := &tree.ExitHook{Call: f}
		s.ExitHookLocked(x)
		s.Mu.Unlock()
		return x.Stop
	}
	s.Mu.Unlock()
	runLate(t, ctx, f)
	return func() bool { return false }
}

// runLate runs an exit hook of a task that has ended, in a shielded stretch at
// the root, so that f may do whatever an exit hook may do.
func runLate(t *tree.Task, ctx context.Context, f func(ctx context.Context, outcome error) error) {
	body := func(ctx context.Context) error { return f(ctx, ErrScopeEnded) }
	o := &tree.ScopeOptions{Name: "exit hook of " + t.Name(), Timeout: tree.HookTimeoutOf(t)}
	if err := tree.RunScope(ctx, body, o, true); err != nil {
		t.Home().Report(err)
	}
}

// OnAbort sets the task's abort hook, which is called when the task's context is
// cancelled while the handler runs.
//
//	async.Go(ctx, accept, async.OnAbort(func(ctx context.Context, cause error) error { return listener.Close() }))
//
// # Details
//
// f is called at most once, on a goroutine of its own and beside the handler, after
// the context is cancelled, with the cause. A task started in a context that is
// already cancelled has its hook called as it starts. f is not called once the handler
// has returned, nor for a task that is still queued. With [Restart] all of this is
// said of each run.
//
// The ctx of f keeps the task's values, is not cancelled with it, and lasts
// HookTimeout. No wait is held up by f beyond Grace; the task settles only after f has
// returned. An error or panic of f is joined to the task's error.
func OnAbort(f func(ctx context.Context, cause error) error) TaskOption {
	if f == nil {
		panic("async: OnAbort(nil): leave the option out instead")
	}
	return taskOption(func(t *tree.TaskOptions) { t.OnAbort, t.OnCancel = f, tree.AbortHookLocked })
}
