package async

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file ends groups. No goroutine stands behind a group while it lasts. The
// first Stop or Wait starts one, which ends it as a Scope ends, unless there is
// nothing to wait for. The waits are those for a future, which settles with it.

func (g *Group) run()            {}
func (g *Group) unrun(*verdict)  {}
func (g *Group) fn() any         { return "group" }
func (g *Group) future() *future { return &g.f }

// close has g end when all that was started in it has; with atRest only if that is
// nothing. It does that once, and does not wait.
func (g *Group) close(atRest bool) {
	s := &g.s
	s.mu.Lock()
	if g.closing || s.ended || atRest && !s.shut {
		s.mu.Unlock()
		return
	}
	g.closing = true
	// Whoever ends the owner waits for g from here on. The owner has not ended: that
	// ends the groups that rest in it first.
	if s.shut {
		g.wakeLocked()
	}
	s.rare.left = nil
	// A Go comes before, and its task is counted; or after, and finds that s has ended
	// or is joined.
	quick := s.live == 0 && s.exits == nil && s.tally == nil && !s.hasRestingLocked()
	s.ended, s.shut = quick, quick
	s.mu.Unlock()
	if quick {
		g.end()
	} else {
		go g.end()
	}
}

// end joins what is left of g, and settles it. It does not block if g.s has ended.
func (g *Group) end() {
	if exploring {
		defer starts("group", &g.f.t)()
	}
	t := &g.f.t
	var v verdict
	g.s.finish(byReturn, nil, &v)
	t.observed(&v, g.s.signal())
	g.s.mu.Lock()
	told := v.echo && g.wasAskedLocked(v.cause)
	g.s.mu.Unlock()
	if told {
		g.f.mu.Lock()
		g.f.ownerTold = true
		g.f.mu.Unlock()
	}
	g.cleanup.Stop()
	g.f.settle(&v)
}

// wasAskedLocked reports whether cause, for which g was cancelled, is that of a Cancel
// or Stop. The scope of g is locked.
func (g *Group) wasAskedLocked(cause error) bool {
	return slices.ContainsFunc(g.asked, func(of error) bool { return tally.Same(of, cause) })
}

// waitInside returns an ErrAwaitCycle if a wait for g under ctx could never end,
// because the task of ctx is part of g.
func (g *Group) waitInside(ctx context.Context) error {
	me, _ := nearest(ctx)
	if g.f.settled() {
		return nil
	}
	return g.f.selfCycle(me)
}

// await waits until g has ended, or ctx. A settled group wins.
func (g *Group) await(ctx context.Context) error {
	switch end, why := g.f.block(ctx, 0, true); end {
	case waitSettled:
		return g.outcome()
	case waitCycle:
		return why
	default:
		return g.stillThere(ctx, why)
	}
}

// outcome returns how g has ended. A panic is raised here if the owner has not
// done so, or is going to, and no other waiter has: it is told by raising it once.
func (g *Group) outcome() error {
	x, failed := g.f.err.(*unclaimed)
	if !failed {
		return g.f.err
	}
	if x.claim() && x.v.panic != nil && g.raised.CompareAndSwap(false, true) {
		panic(x.v.panic)
	}
	return x.v.err
}

// stillThere returns the error of a wait that ended before g, because of ctx.
func (g *Group) stillThere(ctx context.Context, why error) error {
	left := g.s.stragglers()
	switch {
	case g.f.settled():
		return g.outcome()
	case len(left.Left) == 0: // it is about to end
		return why
	}
	return &ScopeError{Scope: g.f.t.name(), Cause: context.Cause(ctx), Errors: []error{left}, stop: ctx.Err()}
}

// dismiss tells the daemon t, which may be a group, that its scope is done. If its scope was
// cancelled that is the reason, though it may not have come as far as t yet: a standard
// context tells those below it one after another, and some have gone on by then.
func (t *task) dismiss() {
	sg := t.stoppedFromAbove()
	if sg == nil {
		sg = canceled(ErrScopeDone)
	}
	t.scope().cancel(sg)
	if g, ok := t.self.(*Group); ok {
		g.close(false)
	}
}
