package tree

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file tells who is left of a scope, if that takes long, and lets a scope return without
// what is left.

// An Impatience is what a scope does about tasks that do not end. It has two timers for
// OnStall at most: one that runs from the end of the body, and one from the
// cancellation; whichever comes while the other has told, or is about to, adds what that
// could not know.
type Impatience struct {
	Stall    time.Duration
	Call     func(*Leftovers) // nil: nobody is to be told
	Detach   time.Duration
	Detaches bool
}

// ImpatienceOf returns that of o, making it if need be.
func ImpatienceOf(o *ScopeOptions) *Impatience {
	p, made := o.impatient.(*Impatience)
	if !made {
		p = new(Impatience)
		o.impatient = p
	}
	return p
}

// detaches reports whether the scope has DetachAfter.
func (o *ScopeOptions) detaches() bool {
	p, ok := o.impatient.(*Impatience)
	return ok && p.Detaches
}

// joins starts the timer of OnStall that runs from the end of the body: the
// commonest stall is a loop that nobody has told to stop.
func (p *Impatience) joins(s *Scope) {
	if p.Call == nil {
		return
	}
	s.Mu.Lock()
	if s.Why.Load() == nil && (s.Live > 0 || s.Exits != nil) {
		addTimerLocked(s, p.Stall, func() { p.stalled(s, nil) })
	}
	s.Mu.Unlock()
}

// cancelledLocked starts the timers that run from the cancellation of s with stop.
func (p *Impatience) cancelledLocked(s *Scope, stop *StopError) {
	if s.leftTasks.Load() {
		return // Scope has returned, and nobody waits
	}
	if p.Call != nil {
		addTimerLocked(s, p.Stall, func() { p.stalled(s, stop) })
	}
	p.overranLocked(s)
}

// overranLocked starts the time of DetachAfter: when s is cancelled, or when an exit hook
// of a scope that was not has overrun its time.
func (p *Impatience) overranLocked(s *Scope) {
	if p.Detaches && !s.Ended {
		addTimerLocked(s, p.Detach, func() { p.giveUp(s) })
	}
}

// addTimerLocked has f called after d, unless s has ended.
func addTimerLocked(s *Scope, d time.Duration, f func()) {
	r := SeldomLocked(s)
	r.Timers = append(r.Timers, time.AfterFunc(d, f))
}

// stalled tells OnStall which tasks of s are left, if any are, some time after s was
// cancelled with stop or, if stop is nil, after its body has ended.
func (p *Impatience) stalled(s *Scope, stop *StopError) {
	if s.Task.Stopped() != nil && stop == nil || s.leftTasks.Load() {
		return // the other timer runs; or Scope has named them when it returned
	}
	left := StragglersOf(s)
	if len(left.Left) == 0 {
		return
	}
	h := new(stallHook)
	s.initHook(&h.GoTask, h, "stall hook", func(context.Context) error { p.Call(left); return nil })
	if addUnlessLeft(s, &h.Task) {
		h.start()
	} else { // s has ended meanwhile, or Scope returns without it
		countOut(&h.Task)
	}
}

// addUnlessLeft is Add for what is nothing to those that Scope leaves behind.
func addUnlessLeft(s *Scope, t *Task) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.leftTasks.Load() || s.Ended {
		return false
	}
	s.linkLocked(t)
	return true
}

// giveUp has the join of s return although children are left. The joiner looks
// at gaveUp under the same lock before it parks: so either it sees that, or we
// see the joiner and wake it.
func (p *Impatience) giveUp(s *Scope) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.gaveUp = true
	if s.joiner != nil {
		s.joiner.notify(gotSettled) // not in turn: this wait is cut short
	}
}

// leaveBehind ends the wait of a scope whose DetachAfter has passed, and returns what
// Scope returns: what has gone wrong so far, and what is left. It returns nil,
// and does nothing, if the last task has left meanwhile: then nobody is left behind.
//
// A stand-in for the scope is registered at the root before anybody is told, so that
// Shutdown misses nothing, until the last of it has ended.
//
// The last task may leave just now. Leaving and leftAtRoot share one lock: either it
// finds leftAtRoot and ends the scope, or we find that nobody is left
// and do it. Daemons and groups are told to go then, as at any end.
func (p *Impatience) leaveBehind(s *Scope, handler tally.HandlerEnd) (v *Verdict) {
	left := StragglersOf(s)
	if len(left.Left) == 0 { // they have left just now
		return nil
	}
	stop := s.Task.Stopped()
	sum, ok := takeSum(s, handler, stop, left.asError())
	if !ok {
		return nil
	}
	v = new(Verdict)
	v.fromSum(s.Task, &sum, stop)
	v.Echo = false
	tellRest(s, &sum, stop, v)

	atRoot := &Task{Kind: KindLeft, Owner: &s.Home.Scope, More: &More{shielded: true}}
	atRoot.More.Name = s.Task.Name()
	atRoot.Inner.Store(s)
	atRoot.Self = &leftBehind{s, atRoot}
	s.Home.Scope.Add(atRoot)

	s.Mu.Lock()
	r := SeldomLocked(s)
	r.returnedErr = v.Err
	timers := r.Timers
	r.Timers = nil
	over := s.Live <= s.dismissible
	if !over {
		r.leftAtRoot = atRoot.Self.Run
	}
	s.Mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	s.Cancel(Canceled(ErrScopeEnded))
	if s.Limit != nil { // its own, see SetOptions: limits further out go on without what is left
		s.Limit.cutOff()
	}
	if over { // the last one came home after all
		go atRoot.Self.Run()
	}
	return v
}

// takeSum takes from the tally what Scope tells, which is e, too; false if nobody is
// left who may be. It is one step: what is recorded before it is told by Scope, and what comes
// after it by the root.
func takeSum(s *Scope, handler tally.HandlerEnd, stop *StopError, e error) (sum tally.Sum, ok bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !mayLeaveLocked(s) {
		return tally.Sum{}, false
	}
	s.leftTasks.Store(true)
	all := tallyLocked(s)
	all.TakeFailures(Unawaited)
	end := endLocked(s, handler, stop)
	end.Last = e
	sum = all.Sum(end)
	all.Forget()
	if alarm := seldomOf(s).Alarm; alarm != nil { // of a panic, which is raised now
		alarm.Stop()
		s.seldom.Alarm = nil
	}
	return sum, true
}

// A leftBehind is a scope that has returned without its tasks, and what stands at the root
// for it.
type leftBehind struct {
	s *Scope
	t *Task
}

func (l *leftBehind) Unrun(*Verdict) {}

func (l *leftBehind) Func() any { return nil }

func (l *leftBehind) Future() *Future { return nil }

// Run ends a scope of whose tasks no more than daemons are left, and takes it off the root.
// Anything that went wrong since is the root's to report.
func (l *leftBehind) Run() {
	if Exploring {
		defer Starts("last", l.t)()
	}
	s := l.s
	var v Verdict
	if s.Conclude(tally.HandlerEnd{}, &v); v.Err != nil && !v.Echo {
		s.Home.Report(v.Err)
	}
	s.Home.Scope.Leave(l.t)
}
