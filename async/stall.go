package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file tells OnStall who is left of a scope, and lets a scope with DetachAfter return
// without them.

// An impatience is what a scope does about tasks that do not end. It has two timers for
// OnStall at most: one that runs from the end of the body, and one from the
// cancellation; whichever comes while the other has told, or is about to, adds what that
// could not know.
type impatience struct {
	stall    time.Duration
	call     func(*StragglerError) // nil: nobody is to be told
	detach   time.Duration
	detaches bool
}

// impatienceOf returns that of o, making it if need be.
func impatienceOf(o *scopeOptions) *impatience {
	p, made := o.impatient.(*impatience)
	if !made {
		p = new(impatience)
		o.impatient = p
	}
	return p
}

// detaches reports whether the scope has DetachAfter.
func (o *scopeOptions) detaches() bool {
	p, ok := o.impatient.(*impatience)
	return ok && p.detaches
}

// joins starts the timer of OnStall that runs from the end of the body: the
// commonest stall is a loop that nobody has told to stop.
func (p *impatience) joins(s *scope) {
	if p.call == nil {
		return
	}
	s.mu.Lock()
	if s.sig.Load() == nil {
		s.timers = append(s.timers, time.AfterFunc(p.stall, func() { p.stalled(s, nil) }))
	}
	s.mu.Unlock()
}

// cancelledLocked starts the timers that run from the cancellation of s with sg.
func (p *impatience) cancelledLocked(s *scope, sg *stopError) {
	if s.abandoned.Load() {
		return // Scope has returned, and nobody waits
	}
	if p.call != nil {
		s.timers = append(s.timers, time.AfterFunc(p.stall, func() { p.stalled(s, sg) }))
	}
	p.overranLocked(s)
}

// overranLocked starts the time of DetachAfter: when s is cancelled, or when an exit hook
// of a scope that was not has overrun its time.
func (p *impatience) overranLocked(s *scope) {
	if p.detaches && !s.ended {
		s.timers = append(s.timers, time.AfterFunc(p.detach, func() { p.giveUp(s) }))
	}
}

// stalled tells OnStall which tasks of s are left, if any are, some time after s was
// cancelled with sg or, if sg is nil, after its body has ended.
func (p *impatience) stalled(s *scope, sg *stopError) {
	if s.t.stopped() != nil && sg == nil || s.abandoned.Load() {
		return // the other timer runs; or Scope has named them when it returned
	}
	e := stragglersOf(s)
	if len(e.Left) == 0 {
		return
	}
	h := new(stallHook)
	s.initHook(&h.goTask, h, "stall hook", func(context.Context) error { p.call(e); return nil })
	if addUnlessLeft(s, &h.t) {
		h.start()
	} else { // s has ended meanwhile, or Scope returns without it
		countOut(&h.t)
	}
}

// addUnlessLeft is add for what is nothing to those that Scope leaves behind.
func addUnlessLeft(s *scope, t *task) bool {
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
func (p *impatience) giveUp(s *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = true
	if s.joiner != nil {
		s.joiner.notify(gotSettled) // not in turn: this wait is cut short
	}
}

// abandon ends the wait of a scope whose DetachAfter has passed, and returns what
// Scope returns: what has gone wrong so far, and what is left. It returns nil,
// and does nothing, if the last task has left meanwhile: then nobody is left behind.
//
// A stand-in for the scope is registered at the root before anybody is told, so that
// Shutdown misses nothing, until the last of it has ended.
//
// The last task may leave just now. Leaving and s.leftAtRoot share one lock: either it
// finds s.leftAtRoot and ends the scope, or we find that nobody is left
// and do it. Daemons and groups are told to go then, as at any end.
func (p *impatience) abandon(s *scope, own tally.Body) (v *verdict) {
	e := stragglersOf(s)
	if len(e.Left) == 0 { // they have left just now
		return nil
	}
	takeUnclaimed(s)
	sg := s.t.stopped()
	sum, ok := takeSum(s, own, sg, e)
	if !ok {
		return nil
	}
	v = new(verdict)
	v.of(s.t, &sum, sg)
	v.echo = false
	tellRestOf(s, &sum, sg, v)

	atRoot := &task{kind: kindLeft, owner: &s.home.s, more: &more{shielded: true}}
	atRoot.more.name = s.t.name()
	atRoot.inner.Store(s)
	atRoot.self = &leftBehind{s, atRoot}
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
	s.cancel(canceled(ErrScopeEnded))
	if s.limit != nil { // its own, see setOptions: limits further out go on without what is left
		s.limit.cutOff()
	}
	if over { // the last one came home after all
		go atRoot.self.run()
	}
	return v
}

// takeSum takes from the tally what Scope tells, which is e, too; false if nobody is
// left who may be. It is one step: what is recorded before it is told by Scope, and what comes
// after it by the root.
func takeSum(s *scope, own tally.Body, sg *stopError, e *StragglerError) (sum tally.Sum, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !mayLeaveLocked(s) {
		return tally.Sum{}, false
	}
	s.abandoned.Store(true)
	all := tallyLocked(s)
	end := endLocked(s, own, sg)
	end.Last = e
	sum = all.Sum(end)
	all.Forget()
	if s.alarm != nil { // of a panic, which is raised now
		s.alarm.Stop()
		s.alarm = nil
	}
	return sum, true
}

// A leftBehind is a scope that has returned without its tasks, and what stands at the root
// for it.
type leftBehind struct {
	s *scope
	t *task
}

func (l *leftBehind) unrun(*verdict)  {}
func (l *leftBehind) fn() any         { return nil }
func (l *leftBehind) future() *future { return nil }

// run ends a scope of whose tasks no more than daemons are left, and takes it off the root.
// What went wrong since is the root's to report.
func (l *leftBehind) run() {
	if exploring {
		defer starts("last", l.t)()
	}
	s := l.s
	var v verdict
	if s.conclude(tally.Body{}, &v); v.err != nil && !v.echo {
		s.home.report(v.err)
	}
	s.home.s.leave(l.t)
}

// OnStall calls f if tasks are left d after the scope should have come to its
// end. That is at most twice: d after body has returned, if the scope is not
// cancelled by then, and d after the scope was cancelled. The first is the
// commonest stall, a loop that nobody has told to stop.
//
// The error names the tasks that are left, with stacks. Its Cause is why they were
// told to stop, nil if they were not. f is called on a goroutine of its own, with
// no lock held, and the scope does not end before it has returned. It is not called
// once Scope has returned. A panic of f is an error of the scope. d <= 0 calls f
// at once, and a nil f panics.
//
// A look at the stacks stops the whole program for a moment; scopes that stall
// at about the same time share one.
func OnStall(d time.Duration, f func(*StragglerError)) ScopeOption {
	if f == nil {
		panic("async: OnStall(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { p := impatienceOf(s); p.stall, p.call = d, f })
}

// DetachAfter lets a scope return although tasks are left: d after its
// cancellation or, if it was not cancelled, after an exit hook has overrun its
// [HookTimeout], once body has returned, Scope returns a [*StragglerError] that
// names them, with stacks, beside what else went wrong. It is the way out when
// code that cannot be mended ignores its context. Workers of package scheduler
// and exit hooks that have overrun their [HookTimeout] are let go, too; an exit
// hook that is in time is waited for.
//
// What is left moves to the root of ctx and stays on record there under the name
// of the scope, where [Shutdown] waits for it: its context is cancelled, with
// [ErrScopeEnded] if by nothing before, and it needs no slot of a [Limit] further out. When
// the last has ended the exit hooks run. What goes wrong from then on is the root's to report. d <= 0 lets
// go at once. Without the option a scope waits as long as it takes.
func DetachAfter(d time.Duration) ScopeOption {
	return scopeOption(func(s *scopeOptions) { p := impatienceOf(s); p.detach, p.detaches = d, true })
}
