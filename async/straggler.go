package async

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is about stragglers: tasks that still run when it is asked what is
// left, told to stop and not gone, or never told. It names them, tells OnStall
// of them, and lets a scope with DetachAfter return without them.

// A stallHook is a call of what OnStall was given.
type stallHook struct{ goTask }

// watchJoin starts the timer of OnStall that runs from the end of the body: the
// commonest stall is a loop that nobody has told to stop.
func (s *scope) watchJoin() {
	if !s.t.isScope() || s.opts == nil || s.opts.stall.call == nil {
		return
	}
	s.mu.Lock()
	if s.sig.Load() == nil {
		s.timers = append(s.timers, time.AfterFunc(s.opts.stall.after, func() { s.stalled(nil) }))
	}
	s.mu.Unlock()
}

// armLocked starts the timers that run from the cancellation of s with sg.
func (s *scope) armLocked(sg *stopError) {
	if s.opts == nil || !s.t.isScope() {
		return
	}
	if s.opts.stall.call != nil {
		s.timers = append(s.timers, time.AfterFunc(s.opts.stall.after, func() { s.stalled(sg) }))
	}
	s.armDetachLocked()
}

// armDetachLocked starts the time of DetachAfter: when s is cancelled, or when an exit
// hook of a scope that was not has overrun its time.
func (s *scope) armDetachLocked() {
	if s.opts != nil && s.opts.detaches && !s.ended {
		s.timers = append(s.timers, time.AfterFunc(s.opts.detach, s.giveUp))
	}
}

// A scope has two timers for OnStall at most, one for each of these; whichever
// comes while the other has told, or is about to, adds what that could not know.

// stalled tells OnStall which tasks of s are left, if any are, some time after s was
// cancelled with sg or, if sg is nil, after its body has ended.
func (s *scope) stalled(sg *stopError) {
	if s.t.stopped() != nil && sg == nil || s.abandoned.Load() {
		return // the other timer runs; or Scope has named them when it returned
	}
	e := s.stragglers()
	if len(e.Left) == 0 {
		return
	}
	h := new(stallHook)
	s.initHook(&h.goTask, h, "stall hook", func(context.Context) error { s.opts.stall.call(e); return nil })
	if s.addUnlessLeft(&h.t) {
		h.start()
	} else { // s has ended meanwhile, or Scope returns without it
		h.t.countOut()
	}
}

// addUnlessLeft is add for what is nothing to those that Scope leaves behind.
func (s *scope) addUnlessLeft(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned.Load() || s.ended {
		return false
	}
	s.linkLocked(t)
	return true
}

// giveUp has the join of s return although children are left. The joiner looks
// at gaveUp under the same lock before it parks: so either it sees that, or we
// see the joiner and wake it.
func (s *scope) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
	if s.joiner != nil {
		s.joiner.notify(gotSettled) // not in turn: this wait is cut short
	}
}

// stragglers returns what is left of s: its own body, too, if that still runs, as
// after a cancellation it may. Nothing is changed by asking.
func (s *scope) stragglers() *StragglerError {
	s.mu.Lock()
	left := s.childrenLocked(func(*task) bool { return true })
	s.mu.Unlock()
	if s.t.kind == kindBody && s.t.state.Load() == stateRunning {
		left = append(left, s.t)
	}
	var cause error
	if sg := s.t.stopped(); sg != nil {
		cause = sg.asError()
	}
	return newStragglerError(s, left, cause)
}

// newStragglerError names the tasks of s, and of those, whose handlers run, the
// first 32 of them; if no handler runs, tasks. It looks at stacks only if there are any: that stops the
// world, see stacks.go. What it says is true for some moment of the time that it
// takes; a task that ends meanwhile may be named.
func newStragglerError(s *scope, tasks []*task, cause error) *StragglerError {
	e := &StragglerError{Scope: s.t.name(), Cause: cause}
	running, later := runningOf(s, tasks, cause == nil), s.joinersLeft()
	if len(running)+len(later) == 0 { // a handler has returned, and what it left is being discarded
		running = slices.DeleteFunc(tasks, func(t *task) bool { return t.isNotLeft(cause == nil) })
	}
	if n := len(running) - maxListed; n > 0 {
		running, e.More = running[:maxListed], n
	}
	if len(running)+len(later) == 0 {
		return e
	}
	stacks := lookFor(running)
	for _, t := range running {
		e.Left = append(e.Left, Straggler{Task: t.name(), State: t.public(), Stack: stacks.stackOf(t)})
		if j, ok := t.self.(*exitRun); ok && j.joiner != nil {
			e.add(j.joiner.Left(), t.public(), stacks)
		}
	}
	e.add(later, s.t.public(), stacks)
	return e
}

// add adds what of another package of ours still runs.
func (e *StragglerError) add(left []bridge.Left, state State, stacks *look) {
	for _, l := range left {
		if len(e.Left) >= maxListed {
			e.More++
			continue
		}
		e.Left = append(e.Left, Straggler{Task: l.Task, State: state, Stack: stacks.stackWith(l.Frame)})
	}
}

// joinersLeft returns what still runs of the joiners whose turn to end has not
// come: of a cancelled scope they run beside its tasks.
func (s *scope) joinersLeft() (left []bridge.Left) {
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
		if t.isNotLeft(noDaemons) {
			continue
		}
		runs := t.state.Load() < stateJoining && t.isNamed()
		if h := t.inner.Load(); h != nil && h != s && h != endedScope {
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
func (t *task) isNotLeft(noDaemons bool) bool {
	return t.isStallInTime() || noDaemons && t.more != nil && t.more.daemon && t.stopped() == nil
}

// isStallInTime reports whether t is a call of OnStall whose time is not up.
func (t *task) isStallInTime() bool {
	if _, stall := t.self.(*stallHook); !stall {
		return false
	}
	h := t.inner.Load()
	return h == nil || h.signal() == nil // nothing else cancels a hook
}

// isNamed reports whether t is named while it runs, and not only what was started
// in it. A group is until it is told to stop: that nobody has is what is wrong.
func (t *task) isNamed() bool {
	switch t.kind {
	case kindLeft, kindFork, kindRun: // of a run its task is named
		return false
	case kindGroup:
		return t.stopped() == nil
	default:
		return true
	}
}

// abandon ends the wait of a scope whose DetachAfter has passed, and writes what
// Scope returns to v: what has gone wrong so far, and what is left. It reports false,
// and does nothing, if the last task has left meanwhile: then nobody is left behind.
//
// A stand-in for the scope is registered at the root before anybody is told, so that
// Shutdown misses nothing, until the last of it has ended.
//
// The last task may leave just now. Leaving and s.leftAtRoot share one lock: either it
// finds s.leftAtRoot and ends the scope, or we find that nobody is left
// and do it. Daemons and groups are told to go then, as at any end.
func (s *scope) abandon(own tally.Body, v *verdict) bool {
	e := s.stragglers()
	if len(e.Left) == 0 { // they have left just now
		return false
	}
	s.takeUnclaimed()
	sg := s.t.stopped()
	sum, ok := s.takeSum(own, sg, e)
	if !ok {
		return false
	}
	v.of(s.t, &sum, sg)
	v.echo = false
	tellRestOf(s, &sum, sg, v)

	atRoot := &task{kind: kindLeft, owner: &s.home.s, more: &more{shielded: true}}
	atRoot.more.name = s.t.name()
	atRoot.inner.Store(s)
	s.home.s.add(atRoot)

	s.mu.Lock()
	s.returnedErr = v.err
	timers := s.timers
	s.timers = nil
	over := s.live <= s.daemons
	if !over {
		s.leftAtRoot = atRoot
	}
	s.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	if over { // the last one came home after all
		go s.endAbandoned(atRoot)
	}
	return true
}

// takeSum takes from the tally what Scope tells, which is e, too; false if nobody is
// left who may be. It is one step: what is recorded before it is told by Scope, and what comes
// after it by the root.
func (s *scope) takeSum(own tally.Body, sg *stopError, e *StragglerError) (sum tally.Sum, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayLeaveLocked() {
		return tally.Sum{}, false
	}
	s.abandoned.Store(true)
	all := s.tallyLocked()
	end := s.endLocked(own, sg)
	end.Last = e
	sum = all.Sum(end)
	all.Forget()
	if s.alarm != nil { // of a panic, which is raised now
		s.alarm.Stop()
		s.alarm = nil
	}
	return sum, true
}

// endAbandoned ends a scope that has returned without its tasks, of which no more than
// daemons are left, and takes it off the root. What went wrong since is the root's to
// report.
func (s *scope) endAbandoned(atRoot *task) {
	if exploring {
		defer starts("last", atRoot)()
	}
	var v verdict
	if s.conclude(tally.Body{}, &v); v.err != nil && !v.echo {
		s.home.report(v.err)
	}
	s.home.s.leave(atRoot)
}
