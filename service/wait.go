package service

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is how the supervisor of a set waits, and what it learns. It runs on
// the goroutine that has called Run and needs no other: it selects on everything
// that may change.

// wait blocks until ok, which is asked after every change, and returns true then.
// It returns false when limit fires, and when level 2 is to begin.
func (s *set) wait(limit <-chan time.Time, ok func() bool) bool {
	for {
		if s.collect(); ok() {
			return true
		}
		if s.mustCut() {
			return false
		}
		if s.sleep(limit) {
			s.collect()
			return ok()
		}
	}
}

// sleep blocks until something may have changed, and reports whether that is
// limit.
func (s *set) sleep(limit <-chan time.Time) bool {
	cases := []reflect.SelectCase{receive(limit), receive(s.changed)}
	if !s.stopping {
		cases = append(cases, receive(s.outer.Done()))
		if s.early && s.parent != nil {
			cases = append(cases, receive(s.parent.turn))
		}
	}
	if s.cut == nil {
		cases = append(cases, receive(s.hurry), receive(s.scope.Done()), receive(s.above()))
	}
	for _, m := range s.members[:s.launched] {
		if !m.ended {
			cases = append(cases, receive(m.run.news()))
		}
		if m.drain != nil && !m.drained {
			cases = append(cases, receive(m.drain.news()))
		}
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen == 0
}

func receive[T any](ch <-chan T) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
}

// notify tells the supervisor that there is news. If that has not taken the last
// yet, it will find these, too: what is new is written before.
func (s *set) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// mustCut reports whether level 2 is to begin before its time.
func (s *set) mustCut() bool {
	return s.cut == nil && (closed(s.hurry) || s.scope.Err() != nil || s.cutAbove())
}

// cutAbove reports whether the Run that this one was called in is at level 2, and
// has told this one to stop: what is shielded from the one is from the other.
func (s *set) cutAbove() bool {
	return s.parent != nil && s.outer.Err() != nil && s.parent.set.scope.Err() != nil
}

// above returns a channel that is closed when cutAbove may have changed next.
func (s *set) above() <-chan struct{} {
	switch {
	case s.parent == nil:
		return nil
	case s.outer.Err() == nil:
		return s.outer.Done()
	}
	return s.parent.set.scope.Done()
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// An end is news of a member: one of its two functions has ended.
type end struct {
	m     *member
	err   error
	order int
	what  endKind
}

type endKind uint8

const (
	endOfRun   endKind = iota
	endOfDrain         // of Drain
	earlyEnd           // Run has failed, and has not returned yet: see member.fail
)

// collect takes note of all that has changed. It looks at who has ended before it
// looks at who has told the set to stop: an end that is for such a reason finds
// that there.
func (s *set) collect() {
	ends := s.ends()
	s.notice()
	for _, e := range ends {
		s.settle(e)
	}
	if s.launched == len(s.members) && s.over() || s.early && s.parent != nil && closed(s.parent.turn) {
		s.begin(nil)
	}
}

// ends returns what has ended since the last call, in the order in which the
// functions returned. So the first is not one that ended because of another.
func (s *set) ends() (ends []end) {
	for _, m := range s.members[:s.launched] {
		if !m.ended && m.run.settled() {
			if err := m.run.result(); s.stopsByDrain(m) && m.wasPaused(err) {
				s.runAgain(m)
				continue
			}
			m.ended = true
			ends = append(ends, end{m, m.outcome(), m.now().order, endOfRun})
		}
		if now := m.now(); now.early != nil && !m.failed {
			m.failed = true
			ends = append(ends, end{m, now.early, now.order, earlyEnd})
		}
		if m.drain != nil && !m.drained && m.drain.settled() {
			m.drained = true
			ends = append(ends, end{m, m.drain.result(), s.next(), endOfDrain})
		}
		if m.over() && !m.now().over {
			m.end()
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.order, b.order) })
	return ends
}

// notice looks for those outside who may tell the set to stop.
func (s *set) notice() {
	switch {
	case s.stopping:
	case s.outer.Err() != nil:
		s.begin(context.Cause(s.outer))
	case s.scope.Err() != nil:
		s.begin(context.Cause(s.scope))
	case closed(s.hurry):
		s.begin(context.Cause(s.program.hurry))
	}
}

// begin has level 1 begin, because of why; nil: a service has ended without a
// failure.
func (s *set) begin(why error) {
	if !s.stopping {
		s.stopping, s.why = true, why
	}
}

// settle judges an end.
func (s *set) settle(e end) {
	if err := e.verdict(); err != nil {
		s.fail(failure{err, e.order})
		if e.what == endOfDrain { // nobody else would tell Run to stop
			e.m.cancel(&cutShort{why: s.why, by: err})
		}
		return
	}
	s.remark(e)
	if e.what == endOfRun && e.err != nil {
		e.m.logStop(e.err)
	}
	if e.what == endOfRun && !e.m.svc.MayEnd {
		s.hasEnded(e.m)
	}
}

// hasEnded begins level 1 because m has ended, unless m takes no more because a Run
// around this one drains: the others serve until the turn of this one has come, for
// what drains there may need them.
func (s *set) hasEnded(m *member) {
	if s.started && m.now().told {
		s.early = true
	} else {
		s.begin(nil)
	}
}

// fail records a failure. The first has level 1 begin.
func (s *set) fail(f failure) {
	if !s.stopping {
		s.begin(f.err)
		s.failed = true
	}
	s.failures = append(s.failures, f)
	if s.program != nil {
		s.program.note(f.err, s)
	}
}

// cause is what services are told at level 1.
func (s *set) cause() error {
	if s.why == nil {
		return async.ErrDismissed
	}
	return s.why
}
