package async

import (
	"slices"
	"time"
)

// This file keeps what has gone wrong in a scope until somebody is told.

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second

// A failure is the error of a future that nobody has been given yet. It is an
// error itself only to stand in the future's err.
type failure struct {
	v     verdict
	scope *scope // which will report it
	kept  bool   // on the scope's list, not only counted; guarded by scope.mu
	taken bool   // given to somebody or reported; guarded by scope.mu
	late  bool   // too late for the scope: the root must be told; set once
}

func (x *failure) Error() string { return x.v.err.Error() }

// faults is what has gone wrong in a scope.
type faults struct {
	errs      []error       // in order; the first 32
	dropped   int           // how many errs were left out
	panics    *PanicError   // the first panic
	hooks     []error       // of exit and abort hooks, observers, discards
	unclaimed []*failure    // of futures; at most 32 at a time, panics left out
	uncounted int           // unclaimed that found no place
	goexit    bool          // a task called runtime.Goexit
	alarms    []*time.Timer // print panics that are not raised for long
}

func (s *scope) faultsLocked() *faults {
	if s.faults == nil {
		s.faults = new(faults)
	}
	return s.faults
}

func (f *faults) add(err error) {
	if len(f.errs) < maxListed {
		f.errs = append(f.errs, err)
	} else {
		f.dropped++
	}
}

// has reports whether err is one of f.
func (f *faults) has(err error) bool {
	return f.panics != nil && f.panics.sameAs(err) || slices.ContainsFunc(f.errs, func(e error) bool { return same(e, err) })
}

// fail records a failure of s and cancels s with it. The record comes first:
// whoever sees the cancellation finds its reason.
func (s *scope) fail(err error, p *PanicError) {
	s.mu.Lock()
	f := s.faultsLocked()
	if p == nil {
		f.add(err)
	} else {
		f.addPanic(p)
		s.alarmLocked(p, nil)
	}
	s.mu.Unlock()
	if s.cancel(canceled(err)) {
		s.mu.Lock()
		s.ownFault = true
		s.mu.Unlock()
	}
}

// addPanic records p, of which a copy may be here. The first panic is the one
// that is raised.
func (f *faults) addPanic(p *PanicError) {
	switch {
	case f.panics == nil:
		f.panics = p
	case !f.holds(p):
		f.add(p)
	}
}

// holds reports whether p or a copy of it with as much beside it is recorded. A
// poorer copy is replaced.
func (f *faults) holds(p *PanicError) bool {
	if f.panics.sameAs(p) {
		if f.panics.others == nil {
			f.panics = p
		}
		return f.panics == p || p.others == nil
	}
	for i, err := range f.errs {
		if q, ok := err.(*PanicError); ok && q.sameAs(p) {
			if q.others == nil {
				f.errs[i] = p
			}
			return f.errs[i] == error(p) || p.others == nil
		}
	}
	return false
}

// alarmLocked has p printed if it is not raised for long; x, if it is not nil,
// is the failure of a future that holds it.
func (s *scope) alarmLocked(p *PanicError, x *failure) {
	name := s.t.name()
	s.faults.alarms = append(s.faults.alarms, time.AfterFunc(panicPatience, func() {
		s.mu.Lock()
		given := x != nil && x.taken && (s.faults == nil || !s.faults.has(p))
		s.mu.Unlock()
		if !given && p.mark.printed.CompareAndSwap(false, true) {
			s.home.printLate(p, name, s.stragglers())
		}
	}))
}

// tellPanic tells the observers of a panic, once on its way up.
func (s *scope) tellPanic(p *PanicError) {
	if s.observers != nil && p.mark.told.CompareAndSwap(false, true) {
		s.tell(Event{Kind: EventPanic, Task: p.Task, Err: p})
	}
}

// noteGoexit records that a task called runtime.Goexit.
func (s *scope) noteGoexit() {
	s.mu.Lock()
	s.faultsLocked().goexit = true
	s.mu.Unlock()
}

// childFailed deals with the error of a Go task.
func (s *scope) childFailed(t *task, v *verdict) {
	switch {
	case v.panic == nil && s.echoes(v):
		s.noteEcho()
	case v.panic == nil && v.echo && s.dismissedDaemon(t):
	case !v.mustRaise() && s.opts != nil && s.opts.onFailure != nil:
		err, told := v.err, v.err
		if bad := guard("OnFailure", func() { err = s.opts.onFailure(told) }); bad != nil {
			s.noteHook(bad)
			err = told
		}
		if err != nil {
			s.fail(err, nil)
		}
	default:
		if v.goexit {
			s.noteGoexit()
		}
		s.failWith(v)
	}
}

// failWith fails s with the outcome of a child.
func (s *scope) failWith(v *verdict) {
	err, p := v.toOwner(s.t.stopped()), v.panic
	if p != nil {
		p = err.(*PanicError)
	}
	s.fail(err, p)
}

// enrich adds to the record of a panic what has come beside it since.
func (s *scope) enrich(v *verdict) {
	err := v.toOwner(s.t.stopped())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultsLocked().goexit = s.faults.goexit || v.goexit
	s.faults.holds(err.(*PanicError))
}

// note records the outcome of a child without cancelling anything.
func (s *scope) note(v *verdict) {
	err := v.toOwner(s.t.stopped())
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := err.(*PanicError); ok && v.panic != nil {
		s.faultsLocked().addPanic(p)
	} else {
		s.faultsLocked().add(err)
	}
}

// echoes reports that a child's outcome only repeats the cancellation of s.
func (s *scope) echoes(v *verdict) bool {
	if !v.echo {
		return false
	}
	// When something further out was cancelled at the same time, for another
	// cause, the child may have heard of that first.
	for ; s != nil; s = s.t.owner {
		sg := s.t.stopped()
		if sg == nil {
			return false
		}
		if same(sg.cause, v.cause) {
			return true
		}
	}
	return false
}

// dismissedDaemon reports that t is a daemon that s has told to go.
func (s *scope) dismissedDaemon(t *task) bool {
	if t.more == nil || !t.more.daemon {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dismissed
}

// noteEcho records that a child reported nothing but the cancellation of s.
func (s *scope) noteEcho() {
	s.mu.Lock()
	s.echoed = true
	s.mu.Unlock()
}

// noteFailure records an error without cancelling anything.
func (s *scope) noteFailure(err error) {
	s.mu.Lock()
	s.faultsLocked().add(err)
	s.mu.Unlock()
}

// noteSkipped records that a queued child was not run.
func (s *scope) noteSkipped() {
	s.mu.Lock()
	s.skipped = true
	s.mu.Unlock()
}

// noteHook records an error of a hook, which never replaces another.
func (s *scope) noteHook(err error) {
	s.mu.Lock()
	if s.t == nil || s.ended || s.t.kind == kindRoot {
		s.mu.Unlock()
		s.home.report(err)
		return
	}
	f := s.faultsLocked()
	if len(f.hooks) < maxListed {
		f.hooks = append(f.hooks, err)
	} else {
		f.dropped++
	}
	s.mu.Unlock()
}

// keep takes charge of a future's failure until somebody is given it.
func (s *scope) keep(x *failure) {
	s.mu.Lock()
	if s.summed { // a promise, rejected just as the scope ended
		x.taken, x.late = true, true
		s.mu.Unlock()
		return
	}
	f := s.faultsLocked()
	if x.kept = len(f.unclaimed) < maxListed || x.v.panic != nil; x.kept {
		f.unclaimed = append(f.unclaimed, x)
	} else {
		f.uncounted++
	}
	if x.v.panic != nil {
		s.alarmLocked(x.v.panic, x)
	}
	s.mu.Unlock()
}

// claim takes x out of its scope's charge: somebody is being given it.
func (x *failure) claim() {
	s := x.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.taken {
		return
	}
	x.taken = true
	f := s.faults
	if f == nil {
		return // a root keeps no list
	}
	if !x.kept {
		f.uncounted--
		return
	}
	for i, y := range f.unclaimed {
		if y == x {
			f.unclaimed = append(f.unclaimed[:i], f.unclaimed[i+1:]...)
			return
		}
	}
}

// takeUnclaimed makes failures of the scope of those nobody was given.
func (s *scope) takeUnclaimed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summed = s.ended
	f := s.faults
	if f == nil {
		return
	}
	for _, x := range f.unclaimed {
		x.taken = true
		f.goexit = f.goexit || x.v.goexit
		err := x.v.toOwner(s.sig.Load())
		if x.v.panic != nil {
			f.addPanic(err.(*PanicError))
		} else {
			f.add(err)
		}
	}
	f.dropped += f.uncounted
	f.unclaimed, f.uncounted = nil, 0
}
