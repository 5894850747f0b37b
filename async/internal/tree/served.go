package tree

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
		t, _ := Nearest(ctx)
		return t.Home().live()
	}
}

func scopeOf(ctx context.Context) context.Context {
	t, _ := Nearest(ctx)
	if t == nil || t.Kind == KindRoot {
		return nil
	}
	t.Scope() // made now, it asks ctx for its Done where no lock is held
	return t
}

func around(scope context.Context) context.Context {
	if owner := scope.(*Task).Owner.TaskOrNil(); owner != nil && owner.Kind != KindRoot {
		return owner
	}
	return nil
}

func stopErrorOf(ctx context.Context) error {
	return StopOf(ctx).AsError()
}

func atEnd(scope context.Context, e bridge.Ender) bridge.Registration {
	s := scope.(*Task).Scope()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Ended {
		return nil
	}
	x := &ExitHook{ender: e}
	s.ExitHookLocked(x)
	return x
}

func leftUndone(scope context.Context, err error, first func() bool) {
	s := scope.(*Task).Scope()
	if IsEcho(err, StoppedByNow(s.Task)) {
		s.recordIf(first, &tally.Fact{Class: tally.Echo, Texts: []error{err}})
	} else {
		s.recordHookErrorIf(first, err)
	}
}

func unused(scope context.Context, r bridge.Registration) bool {
	t := scope.(*Task)
	s := t.Scope()
	if s.Observers != nil || t.Stopped() != nil { // no lock is held: it may ask a user's context
		return false
	}
	x, _ := r.(*ExitHook)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return UnusedLocked(s, x)
}

// UnusedLocked reports whether nothing is left of what was done with the context
// of s, but for the exit hook x, which may be nil.
func UnusedLocked(s *Scope, x *ExitHook) bool {
	return s.Live == 0 && s.promises == nil && s.Tally == nil && s.std.Load() == nil &&
		s.Exits == x && (x == nil || x.next == nil)
}

func newRoot(ctx context.Context, lost func(error), said func(string)) *Root {
	r := &Root{lost: lost, text: said}
	r.t.More = new(More)
	r.t.setOrigin(ctx)
	r.open()
	r.Scope.watch(ctx)
	return r
}
