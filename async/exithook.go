package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is about the hooks that are run when a scope ends.

// exitHookLocked puts x on the list of s, to be the next one that is run.
func (s *scope) exitHookLocked(x *exitHook) {
	x.scope, x.next, x.listed = s, s.exits, true
	if x.next != nil {
		x.next.prev = x
	}
	s.exits = x
}

// unlistLocked takes x off the list it is on.
func (x *exitHook) unlistLocked() {
	if x.next != nil {
		x.next.prev = x.prev
	}
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		x.scope.exits = x.next
	}
	x.prev, x.next, x.listed = nil, nil, false
}

// Remove takes x off the list of its scope, unless it has been taken off to be
// run, and reports whether it did. It may be called any number of times. See
// [bridge.Registration].
func (x *exitHook) Remove() bool {
	s := x.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.listed {
		return false
	}
	x.unlistLocked()
	return true
}

// stop is Remove for the hook of a user, and x forgets that.
func (x *exitHook) stop() bool {
	removed := x.Remove()
	if removed {
		x.call = nil
	}
	return removed
}

// Recall is Remove, and x forgets its scope. See [bridge.Registration].
func (x *exitHook) Recall() bool {
	s := x.scope
	if s == nil {
		return false
	}
	s.mu.Lock()
	listed := x.listed
	if listed {
		x.unlistLocked()
	}
	x.scope = nil
	s.mu.Unlock()
	return listed
}

// Renew puts x on the list of a scope again. See [bridge.Registration].
func (x *exitHook) Renew(scope context.Context) bool {
	s := scope.(*task).scope()
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.exitHookLocked(x)
	}
	s.mu.Unlock()
	return !ended
}

// takeExit takes the exit hook that was registered last off the list of s, nil
// if there is none.
func (s *scope) takeExit() *exitHook {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.exits
	if x != nil {
		x.unlistLocked()
	}
	return x
}

// runExits runs the exit hooks one after another and reports whether there were
// any. What a hook starts is joined before the next one is run. It stops when
// DetachAfter has passed; the hooks that are left are run when the last straggler
// has ended, see endAbandoned.
//
// It is called again and again until nothing is left: a hook may register more,
// and so may a bare goroutine. Either is seen before the scope is closed, because
// the list and the ended flag share one lock.
func (s *scope) runExits(own tally.Body) bool {
	for ran := false; ; ran = true {
		x := s.takeExit()
		if x == nil {
			return ran
		}
		v := verdict{err: s.returnedErr}
		if v.err == nil {
			s.sum(own, &v)
		}
		how, outcome := s.ending(v.err)
		h := s.exitRun(x, how, outcome)
		if h == nil {
			continue
		}
		s.mu.Lock()
		s.linkLocked(&h.t)
		s.mu.Unlock()
		h.start()
		if !s.join() {
			return true
		}
		s.takeUnclaimed()
	}
}

// exitRun returns the task that runs x; nil if telling an Ender is all there is
// to do. It tells an Ender at once.
func (s *scope) exitRun(x *exitHook, how Ending, outcome error) *exitRun {
	h := new(exitRun)
	if x.ender == nil {
		s.initHook(&h.goTask, h, "exit hook", func(ctx context.Context) error {
			defer h.lookAtClock()
			return x.call(ctx, outcome)
		})
		return h
	}
	x.ender.ScopeEnds(bridge.Ending(how), outcome)
	j, joins := x.ender.(bridge.Joiner)
	if !joins || j.Ended() {
		return nil
	}
	h.joiner = j
	s.initHook(&h.goTask, h, "end of "+j.Name(), j.Join)
	h.t.more.timeout = 0
	h.t.countOut() // it takes as long as it takes, so Shutdown does not wait for it as for a hook
	return h
}

// lookAtClock is called when the hook has come to its end, and notes whether it
// was too late.
func (h *exitRun) lookAtClock() {
	if limit, ok := context.Cause(&h.t).(*TimeoutError); ok && limit != nil && limit.Task == h.t.name() {
		h.late = limit
	}
}

// ending returns how s, whose outcome so far is given, is ending, and what its exit
// hooks are told. A scope that was cancelled does not end well, whatever its body has
// returned.
func (s *scope) ending(outcome error) (Ending, error) {
	sg := s.t.stopped()
	switch {
	case sg == nil && outcome == nil:
		return Well, nil
	case sg == nil:
		return Failed, outcome
	}
	own := s.broughtOn(sg)
	switch outcome.(type) {
	case nil, *stopError:
		outcome = &stopError{err: sg.err, cause: sg.cause, own: own}
	}
	return EndingOf(outcome), outcome
}
