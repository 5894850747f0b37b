package async

import (
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/look"
	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file says who is left of a scope: stragglers, tasks that still run when it is asked,
// told to stop and not gone, or never told. It only looks, but for the alarm of a panic that
// waits to be raised.

// stragglersOf returns what is left of s: its own body, too, if that still runs, as
// after a cancellation it may. Nothing is changed by asking.
func stragglersOf(s *scope) *leftovers {
	s.mu.Lock()
	left := childrenLocked(s, func(*task) bool { return true })
	s.mu.Unlock()
	if s.t.kind == kindBody && s.t.state.Load() == stateRunning {
		left = append(left, s.t)
	}
	var cause error
	if sg := s.t.stopped(); sg != nil {
		cause = sg.asError()
	}
	return newLeftovers(s, left, cause)
}

// shownBy is where a traceback shows tasks: as the receiver of the function that is their
// goroutine, and as the task of a body.
var shownBy = []look.Shown{{By: "async.(*task).main("}, {By: "async.(*bodyRun).call(", Arg: 1}}

// newLeftovers names the tasks of s, and of those, whose handlers run, the
// first 32 of them; if no handler runs, tasks. It looks at stacks only if there are any: that stops the
// world, see package look. What it says is true for some moment of the time that it
// takes; a task that ends meanwhile may be named.
func newLeftovers(s *scope, tasks []*task, cause error) *leftovers {
	e := &leftovers{scope: s.t.name(), cause: cause}
	running, later := runningOf(s, tasks, cause == nil), joinersLeft(s)
	if len(running)+len(later) == 0 { // a handler has returned, and what it left is being discarded
		running = slices.DeleteFunc(tasks, func(t *task) bool { return isNotLeft(t, cause == nil) })
	}
	if n := len(running) - tally.Max; n > 0 {
		running, e.more = running[:tally.Max], n
	}
	if len(running)+len(later) == 0 {
		return e
	}
	stacks := look.For(running, shownBy...)
	for _, t := range running {
		e.left = append(e.left, straggler{t.name(), t.public(), stacks.Of(t)})
		if j, ok := t.self.(*exitRun); ok && j.joiner != nil {
			e.add(j.joiner.Left(), t.public(), stacks)
		}
	}
	e.add(later, s.t.public(), stacks)
	return e
}

// add adds what of another package of ours still runs.
func (e *leftovers) add(left []bridge.Left, state taskState, stacks *look.Look) {
	for _, l := range left {
		if len(e.left) >= tally.Max {
			e.more++
			continue
		}
		e.left = append(e.left, straggler{l.Task, state, stacks.With(l.Frame)})
	}
}

// joinersLeft returns what still runs of the joiners whose turn to end has not
// come: of a cancelled scope they run beside its tasks.
func joinersLeft(s *scope) (left []bridge.Left) {
	var joiners []bridge.Joiner
	s.mu.Lock()
	for x := s.exits; x != nil; x = x.next {
		if j, ok := x.ender.(bridge.Joiner); ok {
			joiners = append(joiners, j)
		}
	}
	s.mu.Unlock()
	for _, j := range joiners {
		left = append(left, j.Left()...)
	}
	return left
}

// runningOf returns those of tasks, which are some of s, and of what they have
// started whose handlers run, in the order in which they were started. A task
// that only waits for what it started, or never had a handler, is represented
// by that. A daemon that nobody has told to go may be left out: it waits for
// the others.
func runningOf(s *scope, tasks []*task, noDaemons bool) (running []*task) {
	todo := make([]*task, 0, len(tasks)) // the next one is the last
	for i := range tasks {
		todo = append(todo, tasks[len(tasks)-1-i])
	}
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if isNotLeft(t, noDaemons) {
			continue
		}
		runs := t.state.Load() < stateJoining && isNamed(t)
		if h := t.inner.Load(); h != nil && h != s && !h.isShared() {
			h.mu.Lock()
			for c := h.children; c != nil; c = c.next { // the one started last comes first
				todo = append(todo, c)
			}
			h.mu.Unlock()
		}
		if runs {
			running = append(running, t)
		}
	}
	return running
}

// isNotLeft reports whether t is no straggler: a call of OnStall that is in time, which
// says what is left, and, if noDaemons says so, a daemon that nobody has told to go.
func isNotLeft(t *task, noDaemons bool) bool {
	return isStallInTime(t) || noDaemons && t.more != nil && t.more.daemon && t.stopped() == nil
}

// isStallInTime reports whether t is a call of OnStall whose time is not up.
func isStallInTime(t *task) bool {
	if _, stall := t.self.(*stallHook); !stall {
		return false
	}
	h := t.inner.Load()
	return h == nil || h.signal() == nil // nothing else cancels a hook
}

// isNamed reports whether t is named while it runs, and not only what was started
// in it. A group is until it is told to stop: that nobody has is what is wrong.
func isNamed(t *task) bool {
	switch t.kind {
	case kindLeft, kindFork, kindRun: // of a run its task is named
		return false
	case kindGroup:
		return t.stopped() == nil
	default:
		return true
	}
}

// alarmLocked has the panic that s is to raise printed if that takes long.
func alarmLocked(s *scope) {
	p := s.tally.FirstPanic()
	if p == nil || s.alarm != nil || s.t.kind == kindRoot {
		return
	}
	s.alarm = time.AfterFunc(panicPatience, func() { printLate(s, words.PanicIn(p)) })
}

// printLate prints a panic that has waited long for its scope to end, once.
func printLate(s *scope, p *panicRecord) {
	if p.of.printed.CompareAndSwap(false, true) {
		s.home.printLate(p, s.t.name(), stragglersOf(s))
	}
}

// isJoin reports whether t joins something of another package of ours.
func isJoin(t *task) bool {
	h, exit := t.self.(*exitRun)
	return exit && h.joiner != nil
}

// mayLeaveLocked reports whether the join of s may end although something is
// left: DetachAfter has passed, and Scope has not returned yet. An exit hook that is in
// time is waited for; its deadline is its own. So is a call of OnStall, if nothing else
// is left.
func mayLeaveLocked(s *scope) (may bool) {
	if !s.gaveUp || s.returnedErr != nil {
		return false
	}
	for c := s.children; c != nil; c = c.next {
		if _, exit := c.self.(*exitRun); exit && !c.more.countedOut.Load() {
			return false
		}
		may = may || !isStallInTime(c)
	}
	return may
}

// printLate prints a panic that has waited long for its scope to end.
func (r *root) printLate(p *panicRecord, scope string, left *leftovers) {
	r.report(fmt.Errorf("%w\nasync: this panic has waited %v to be raised by %s, which waits for: %v",
		p.raise(), panicPatience, scope, left.asError()))
}

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second
