package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file serves package bridge: what the packages beside this one have to
// know of scopes.

func init() {
	bridge.NewRoot = func(ctx context.Context, lost func(error), said func(string)) context.Context {
		return &newRoot(ctx, lost, said).t
	}
	bridge.ScopeOf = scopeOf
	bridge.Around = around
	bridge.AtEnd = atEnd
	bridge.LeftUndone = leftUndone
	bridge.Unused = unused
	bridge.StopError = stopErrorOf
	bridge.Live = func(ctx context.Context) []string {
		t, _ := nearest(ctx)
		return t.home().live()
	}
}

func scopeOf(ctx context.Context) context.Context {
	t, _ := nearest(ctx)
	if t == nil || t.kind == kindRoot {
		return nil
	}
	t.scope() // made now, it asks ctx for its Done where no lock is held
	return t
}

func around(scope context.Context) context.Context {
	if owner := scope.(*task).owner.task(); owner != nil && owner.kind != kindRoot {
		return owner
	}
	return nil
}

func stopErrorOf(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return (&stopError{err: err, cause: context.Cause(ctx)}).asError()
}

func atEnd(scope context.Context, e bridge.Ender) bridge.Registration {
	s := scope.(*task).scope()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	x := &exitHook{ender: e}
	s.exitHookLocked(x)
	return x
}

func leftUndone(scope context.Context, err error, first func() bool) {
	s := scope.(*task).scope()
	if isEcho(err, s.t.stopped()) {
		s.recordIf(first, &tally.Fact{Class: tally.Echo, Texts: []error{err}})
	} else {
		s.recordHookErrorIf(first, err)
	}
}

func unused(scope context.Context, r bridge.Registration) bool {
	t := scope.(*task)
	s := t.scope()
	if s.observers != nil || t.stopped() != nil { // no lock is held: it may ask a user's context
		return false
	}
	x, _ := r.(*exitHook)
	s.mu.Lock()
	defer s.mu.Unlock()
	return unusedLocked(s, x)
}

// unusedLocked reports whether nothing is left of what was done with the context
// of s, but for the exit hook x, which may be nil.
func unusedLocked(s *scope, x *exitHook) bool {
	return s.live == 0 && s.promises == nil && s.tally == nil && s.std.Load() == nil &&
		s.exits == x && (x == nil || x.next == nil)
}

func newRoot(ctx context.Context, lost func(error), said func(string)) *root {
	r := &root{lost: lost, text: said}
	r.t.more = new(more)
	r.t.setOrigin(ctx)
	r.open()
	r.s.watch(ctx)
	return r
}
