package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Detach starts task so that it outlives the scope of ctx, on record under name.
//
//	async.Detach(ctx, "send receipt", func(ctx context.Context) error { return mail.Send(ctx, receipt) })
//
// # Details
//
// Detach is the only way to outlive a scope: the task is registered under name, which
// must not be empty, at the root until it ends. Its context keeps the values of ctx
// but not its cancellation. Its error is returned by [Shutdown]; a panic of it ends
// the process, with its stack, as there is no Scope to raise it again.
//
// Detach does not block, but for an executor ([On]) that does. The task is cancelled
// by its own options and by Shutdown, with [ErrShutdown]; Shutdown joins it. Detach
// panics if task or ctx is nil, if name is empty, and once Shutdown has been called.
// It needs no scope in ctx, and any number of goroutines may call it.
func Detach(ctx context.Context, name string, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Detach with a nil function: pass what is to be called")
	}
	if name == "" {
		panic("async: Detach without a name: those who find it running must be able to tell what it is")
	}
	t, _ := tree.Nearest(ctx)
	home := t.Home()
	g := &tree.GoTask{Handler: task}
	g.Task.Self, g.Task.Kind, g.Task.Owner = g, tree.KindDetached, &home.Scope
	g.Task.Equip(newMore(&home.Scope, opts), context.WithoutCancel(ctx))
	g.Task.More.Name = name
	if !home.Admit(&g.Task) {
		panic("async: Detach after Shutdown: " + name)
	}
	g.Task.Begin()
}

// Shutdown ends what is registered at the root of ctx, that of the process by default.
//
//	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
//	err := async.Shutdown(ctx) // at the end of main
//
// # Details
//
// From the call on Shutdown refuses new detached tasks. It waits for detached tasks,
// for tasks that were started outside of all scopes, and for stragglers that
// [DetachAfter] has let go, until ctx is done. Then it dismisses the groups at the
// root, with [ErrDismissed], and joins them: what that has cut off, and what failed in
// a group that nobody waited for, the root is told.
//
// If somebody is left then, it cancels every task below the root with [ErrShutdown]:
// those it has waited for, scopes and all that was started in any of these, under
// [context.WithoutCancel] and with whatever ctx else. Hooks and what [Shield] protects
// have time limits of their own and keep those. It waits until the abort hooks have
// ended or their time is up, and 100 ms longer.
//
// Scopes that stand at the root have callers that wait for them. So Shutdown waits for
// scopes only if ctx has a deadline. If it has none, Shutdown gives scopes 100 ms
// after the others have ended, cancels nothing, and names the tasks that are left.
//
// It returns the errors of detached tasks, each once (the first 32 and how many more
// there were), and, if tasks are left, a [*StragglerError] that names them. It never
// cancels or waits for what the caller is part of. It may be called any number of
// times, by any goroutine. A nil ctx panics.
func Shutdown(ctx context.Context) error {
	return tree.Shutdown(ctx)
}

// OnStall calls f if tasks are left d after the scope should have come to its end.
//
//	async.Scope(ctx, serve, async.OnStall(time.Minute, func(e *async.StragglerError) { log.Print(e) }))
//
// # Details
//
// f is called at most twice: d after body has returned, if the scope is not cancelled
// by then, and d after the scope was cancelled. The first is the commonest stall, a
// loop that nobody has told to stop.
//
// The error names the tasks that are left, with stacks. Its Cause is why they were
// told to stop, nil if they were not. f is called on a goroutine of its own, with no
// lock held, and the scope does not end before it has returned. It is not called once
// Scope has returned. A panic of f is an error of the scope. d <= 0 calls f at once,
// and a nil f panics.
//
// A look at the stacks stops the whole program for a moment; scopes that stall at
// about the same time share one.
func OnStall(d time.Duration, f func(*StragglerError)) ScopeOption {
	if f == nil {
		panic("async: OnStall(nil): leave the option out instead")
	}
	return scopeOption(func(s *tree.ScopeOptions) {
		p := tree.ImpatienceOf(s)
		p.Stall, p.Call = d, func(l *tree.Leftovers) { f(stragglerError(l)) }
	})
}

// DetachAfter lets a scope return although tasks are left, the way out when code that
// cannot be mended ignores its context.
//
//	err := async.Scope(ctx, convert, async.Timeout(time.Minute), async.DetachAfter(5*time.Second))
//
// # Details
//
// d after its cancellation or, if it was not cancelled, after an exit hook has overrun
// its [HookTimeout], once body has returned, Scope returns a [*StragglerError] that
// names the tasks that are left, with stacks, beside what else went wrong. Workers of
// package scheduler and exit hooks that have overrun their [HookTimeout] are let go,
// too; an exit hook that is in time is waited for.
//
// The tasks that are left move to the root of ctx and stay on record there under the
// name of the scope, where [Shutdown] waits for it: its context is cancelled, with
// [ErrScopeEnded] if by nothing before, and it needs no slot of a [Limit] further out.
// When the last has ended the exit hooks run. Failures from then on are the root's to
// report. d <= 0 lets go at once. Without the option a scope waits as long as it
// takes.
func DetachAfter(d time.Duration) ScopeOption {
	return scopeOption(func(s *tree.ScopeOptions) { p := tree.ImpatienceOf(s); p.Detach, p.Detaches = d, true })
}
