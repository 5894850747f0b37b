package async

import (
	"context"
)

// Detach starts task so that it outlives the scope of ctx. It is the only way
// to do so, and on record: the task is registered under name, which must not
// be empty, at the root until it ends. Its context keeps the values of ctx but
// not its cancellation. Its error is returned by [Shutdown]; a panic of it
// ends the process, with its stack, as there is no Scope to raise it again.
//
// Detach does not block, but for an executor ([On]) that does. The task is
// cancelled by its own options and by Shutdown, with [ErrShutdown]; Shutdown
// joins it. Detach panics if task or ctx is nil, if name is empty, and once
// Shutdown has been called. It needs no scope in ctx, and any number of
// goroutines may call it.
func Detach(ctx context.Context, name string, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Detach with a nil function: pass what is to be called")
	}
	if name == "" {
		panic("async: Detach without a name: those who find it running must be able to tell what it is")
	}
	t, _ := nearest(ctx)
	home := t.home()
	g := &goTask{handler: task}
	g.t.self, g.t.kind, g.t.owner = g, kindDetached, &home.s
	g.t.equip(newMore(&home.s, opts), context.WithoutCancel(ctx))
	g.t.more.name = name
	if !home.admit(&g.t) {
		panic("async: Detach after Shutdown: " + name)
	}
	g.t.begin()
}

// Shutdown ends what is registered at the root of ctx, that of the process by
// default. From the call on it refuses new detached tasks. It waits for detached
// tasks, for tasks that were started outside of all scopes, and for stragglers
// that [DetachAfter] has let go, until ctx is done. Then it dismisses the groups at
// the root, with [ErrDismissed], and joins them: what that has cut off, and what failed
// in a group that nobody waited for, the root is told.
//
// If somebody is left then, it cancels every task below the root with
// [ErrShutdown]: those it has waited for, scopes and all that was started in
// any of these, under [context.WithoutCancel] and with whatever ctx else. Hooks
// and what [Shield] protects have time limits of their own and keep those. It
// waits until the abort hooks have ended or their time is up, and 100 ms longer.
//
// Scopes that stand at the root have callers that wait for them. So Shutdown
// waits for scopes only if ctx has a deadline. If it has none, Shutdown gives
// scopes 100 ms after the others have ended, cancels nothing, and names the
// tasks that are left.
//
// It returns the errors of detached tasks, each once (the first 32 and how many
// more there were), and, if tasks are left, a [*StragglerError] that names them.
// It never cancels or waits for what the caller is part of. It may be called any
// number of times, by any goroutine. A nil ctx panics.
func Shutdown(ctx context.Context) error {
	return shutdown(ctx)
}
