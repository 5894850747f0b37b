package tree

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

// StragglersOf returns what is left of s: its own body, too, if that still runs, as
// after a cancellation it may. Nothing is changed by asking.
func StragglersOf(s *Scope) *Leftovers {
	s.Mu.Lock()
	left := childrenLocked(s, func(*Task) bool { return true })
	s.Mu.Unlock()
	if s.Task.Kind == KindScope && s.Task.State.Load() == StateRunning {
		left = append(left, s.Task)
	}
	var cause error
	if stop := s.Task.Stopped(); stop != nil {
		cause = stop.AsError()
	}
	return newLeftovers(s, left, cause)
}

// ShownBy is where a traceback shows tasks: as the receiver of the function that is their
// goroutine, and as the task of a body.
var ShownBy = []look.Shown{
	{By: "async/internal/tree.(*Task).Main("},
	{By: "async/internal/tree.(*ScopeCall).call(", Arg: 1},
}

// newLeftovers names the tasks of s, and of those, whose handlers run, the
// first 32 of them; if no handler runs, tasks. It looks at stacks only if there are any: that stops the
// world, see package look. The answer is true for some moment of the time that it
// takes; a task that ends meanwhile may be named.
func newLeftovers(s *Scope, tasks []*Task, cause error) *Leftovers {
	e := &Leftovers{Scope: s.Task.Name(), Cause: cause}
	running, later := runningOf(s, tasks, cause == nil), joinersLeft(s)
	if len(running)+len(later) == 0 { // a handler has returned, and what it left is being discarded
		running = slices.DeleteFunc(tasks, func(t *Task) bool { return isNotLeft(t, cause == nil) })
	}
	if n := len(running) - tally.Max; n > 0 {
		running, e.More = running[:tally.Max], n
	}
	if len(running)+len(later) == 0 {
		return e
	}
	stacks := look.For(running, ShownBy...)
	for _, t := range running {
		e.Left = append(e.Left, Straggler{t.Name(), t.PublicState(), stacks.StackOf(t)})
		if j, ok := t.Self.(*exitRun); ok && j.joiner != nil {
			e.add(j.joiner.Left(), t.PublicState(), stacks)
		}
	}
	e.add(later, s.Task.PublicState(), stacks)
	return e
}

// add adds what of another package of ours still runs.
func (l *Leftovers) add(left []bridge.Left, state TaskState, stacks *look.Look) {
	for _, one := range left {
		if len(l.Left) >= tally.Max {
			l.More++
			continue
		}
		l.Left = append(l.Left, Straggler{one.Task, state, stacks.With(one.Frame)})
	}
}

// joinersLeft returns what still runs of the joiners whose turn to end has not
// come: of a cancelled scope they run beside its tasks.
func joinersLeft(s *Scope) (left []bridge.Left) {
	var joiners []bridge.Joiner
	s.Mu.Lock()
	for x := s.Exits; x != nil; x = x.next {
		if j, ok := x.ender.(bridge.Joiner); ok {
			joiners = append(joiners, j)
		}
	}
	s.Mu.Unlock()
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
func runningOf(s *Scope, tasks []*Task, noDaemons bool) (running []*Task) {
	todo := make([]*Task, 0, len(tasks)) // the next one is the last
	for i := range tasks {
		todo = append(todo, tasks[len(tasks)-1-i])
	}
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if isNotLeft(t, noDaemons) {
			continue
		}
		runs := t.State.Load() < StateJoining && isNamed(t)
		if h := t.Inner.Load(); h != nil && h != s && !h.isShared() {
			h.Mu.Lock()
			for c := h.children; c != nil; c = c.next { // the one started last comes first
				todo = append(todo, c)
			}
			h.Mu.Unlock()
		}
		if runs {
			running = append(running, t)
		}
	}
	return running
}

// isNotLeft reports whether t is no straggler: a call of OnStall that is in time, which
// says what is left, and, if noDaemons says so, a daemon that nobody has told to go.
func isNotLeft(t *Task, noDaemons bool) bool {
	return isStallInTime(t) || noDaemons && t.More != nil && t.More.Daemon && t.Stopped() == nil
}

// isStallInTime reports whether t is a call of OnStall whose time is not up.
func isStallInTime(t *Task) bool {
	if _, stall := t.Self.(*stallHook); !stall {
		return false
	}
	h := t.Inner.Load()
	return h == nil || h.StopBeforeEnd() == nil // nothing else cancels a hook
}

// isNamed reports whether t is named while it runs, and not only what was started
// in it. A group is until it is told to stop: that nobody has is what is wrong.
func isNamed(t *Task) bool {
	switch t.Kind {
	case KindLeft, KindFork, KindRun: // of a run its task is named
		return false
	case KindGroup:
		return t.Stopped() == nil
	default:
		return true
	}
}

// alarmLocked has the panic that s is to raise printed if that takes long.
func alarmLocked(s *Scope) {
	p := s.Tally.FirstPanic()
	if p == nil || seldomOf(s).Alarm != nil || s.Task.Kind == KindRoot {
		return
	}
	SeldomLocked(s).Alarm = time.AfterFunc(PanicPatience, func() { printLate(s, Codec.PanicIn(p)) })
}

// printLate prints a panic that has waited long for its scope to end, once.
func printLate(s *Scope, p *Panic) {
	if p.identity.printed.CompareAndSwap(false, true) {
		s.Home.printLate(p, s.Task.Name(), StragglersOf(s))
	}
}

// isJoin reports whether t joins something of another package of ours.
func isJoin(t *Task) bool {
	h, exit := t.Self.(*exitRun)
	return exit && h.joiner != nil
}

// mayLeaveLocked reports whether the join of s may end although something is
// left: DetachAfter has passed, and Scope has not returned yet. An exit hook that is in
// time is waited for; its deadline is its own. So is a call of OnStall, if nothing else
// is left.
func mayLeaveLocked(s *Scope) (may bool) {
	if !s.gaveUp || seldomOf(s).returnedErr != nil {
		return false
	}
	for c := s.children; c != nil; c = c.next {
		if _, exit := c.Self.(*exitRun); exit && !c.More.countedOut.Load() {
			return false
		}
		may = may || !isStallInTime(c)
	}
	return may
}

// printLate prints a panic that has waited long for its scope to end.
func (r *Root) printLate(p *Panic, scope string, left *Leftovers) {
	r.Report(fmt.Errorf("%w\nasync: this panic has waited %v for the end of %s, which waits for: %v",
		p.Raise(), PanicPatience, scope, left.asError()))
}

// PanicPatience is how long a panic may wait to be raised again before it is
// printed.
const PanicPatience = 10 * time.Second
