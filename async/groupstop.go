package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Cancel cancels the group with cause (nil: [context.Canceled]) and does not wait: the
// way to stop it from inside.
//
//	first := group.Cancel(errConnectionLost)
//
// # Details
//
// The group does not end by that. Cancel reports whether it was the first to cancel
// the group.
//
// The caller has been told: that tasks were kept from being done is no failure of the
// scope that the group was made in. Other failures are.
func (g *Group) Cancel(cause error) bool {
	g.made("Cancel")
	if cause == nil {
		cause = context.Canceled
	}
	if g.f.Task.Stopped() != nil {
		return false
	}
	g.s.Mu.Lock()
	g.asked = append(g.asked, cause) // before the cancel: g may have ended after it
	g.s.Mu.Unlock()
	return g.s.Cancel(tree.Canceled(cause))
}

// Stop is [Group.Cancel], then [Group.Wait]: when it has returned, nothing of the
// group runs any more, and nothing will, but for what [DetachAfter] has let go.
//
//	err := group.Stop(ctx, nil)
//
// # Details
//
// Stop may be called any number of times, by any number of goroutines, before anything
// was started, and when the group has ended: every call returns the same outcome.
//
// It returns nil if nothing was lost to it: every task ended well, whether or not it
// was told to stop. A task that returned nothing but why it was told to stop has not:
// then there is a [*ScopeError] with that as its Cause. Tasks that serve until they
// are stopped return nil then, or are started as a [Daemon].
//
// ctx bounds the wait only. When it ends Stop returns an error that matches its cause
// and is a [*StragglerError] that names who is left, too; the group ends when these
// have, and a later Stop waits for that. With the context of a task of the group, of
// what that has started, or of the group itself Stop cancels the group, which then
// ends by itself, and returns [ErrAwaitCycle].
func (g *Group) Stop(ctx context.Context, cause error) error {
	inside := g.made("Stop").waitInside(ctx) // asked now: ctx is done after the cancel if it is inside
	if inside != nil {
		g.Cancel(cause)
		(*grouping)(g).Close()
		return inside
	}
	g.f.Wanted.Add(1) // before the cancel, after which g may end
	g.Cancel(cause)
	err := g.await(ctx)
	if g.f.Unwant() { // also if g has settled since: then this call was counted
		return g.outcome()
	}
	return err
}

// Wait waits until everything that was started in the group has ended, its exit hooks
// included.
//
//	err := group.Wait(ctx) // nothing can be started in it any more
//
// # Details
//
// Then the group has ended: nothing can be started in it. Wait may be called any
// number of times, by any number of goroutines; every call returns the same outcome:
// what [Scope] would return whose body has returned nil. The first call of Wait or
// Stop counts as the end of the body: once the other tasks have ended, daemons are
// told to.
//
// A panic of a task is raised as a [*PanicError] by one of the waits, and returned by
// the others. ctx bounds the wait only, as in [Group.Stop], and the task of ctx is the
// one that waits: it lends its slot of a [Limit]. If that is part of the group, Wait
// returns [ErrAwaitCycle] and does nothing else.
func (g *Group) Wait(ctx context.Context) error {
	if inside := g.made("Wait").waitInside(ctx); inside != nil {
		return inside
	}
	return g.await(ctx)
}

// waitInside returns an ErrAwaitCycle if a wait for g under ctx could never end,
// because the task of ctx is part of g.
func (g *Group) waitInside(ctx context.Context) error {
	me, _ := tree.Nearest(ctx)
	if g.f.Settled() {
		return nil
	}
	return g.f.SelfCycle(me)
}

// await has g end, and waits until it has, or ctx. A settled group wins. The wait is
// counted before g may end, so that the owner is not told of what is given here.
func (g *Group) await(ctx context.Context) error {
	g.f.Wanted.Add(1)
	(*grouping)(g).Close()
	end, why := g.f.Block(ctx, 0, true)
	if end == tree.WaitStopped {
		why = g.stillThere(ctx, why)
	}
	if g.f.Unwant() { // also if g has settled since: then this call was counted
		return g.outcome()
	}
	return why
}

// outcome returns how g has ended. A panic is raised here if the owner has not
// done so, or is going to, and no other waiter has: it is told by raising it once.
func (g *Group) outcome() error {
	x, failed := g.f.Err.(*tree.Unclaimed)
	if !failed {
		return g.f.Err
	}
	if x.Claim() && x.Verdict.Panic != nil && g.raised.CompareAndSwap(false, true) {
		panic(x.Verdict.Panic.Raise())
	}
	return x.Verdict.Err
}

// stillThere returns the error of a wait that ended before g, because of ctx.
func (g *Group) stillThere(ctx context.Context, why error) error {
	left := tree.StragglersOf(&g.s)
	if len(left.Left) == 0 { // g is about to end
		return why
	}
	e := stragglerError(left)
	e.cutShort = context.Cause(ctx)
	return &ScopeError{Scope: g.f.Task.Name(), Cause: e.cutShort, Errors: []error{e}, stop: ctx.Err()}
}
