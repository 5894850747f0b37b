package async

import (
	"context"

	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is what the packages beside this one have to know of scopes. They
// reach it through package bridge.

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

func toldBy(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return (&signal{err, context.Cause(ctx)}).told()
}

func atEnd(scope context.Context, e bridge.Ender) bool {
	s := scope.(*task).scope()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.exits = append(s.exits, exit{ending: e})
	return true
}

// ending returns how s, whose outcome so far is given, is ending. One that was
// cancelled does not end well, whatever its body has returned.
func (s *scope) ending(outcome error) (bridge.Ending, error) {
	sg := s.t.stopped()
	switch {
	case sg == nil && outcome == nil:
		return bridge.Well, nil
	case sg == nil:
		return bridge.Failed, outcome
	case outcome == nil:
		outcome = sg.told()
	}
	if s.broughtOn(sg) {
		return bridge.Failed, outcome
	}
	return bridge.Stopped, outcome
}

// broughtOn reports whether s was cancelled with sg for something of its own:
// a failure inside, its time limit, or what watches it.
func (s *scope) broughtOn(sg *signal) bool {
	s.mu.Lock()
	own := s.ownFault || s.faults != nil && s.faults.has(sg.cause)
	s.mu.Unlock()
	if own {
		return true
	}
	switch sg.cause.(type) {
	case *TimeoutError, *WatchdogError:
		return !s.t.inheritedCause(sg.cause)
	}
	return false
}

// inheritedCause reports whether anything around t was cancelled with cause.
func (t *task) inheritedCause(cause error) bool {
	if ctx := t.foreign(); isDone(ctx) && same(context.Cause(ctx), cause) {
		return true
	}
	if t.owner == nil || t.more != nil && t.more.shielded {
		return false
	}
	sg := t.owner.t.stopped()
	return sg != nil && same(sg.cause, cause)
}
