package async

import (
	"errors"
	"reflect"
	"runtime/debug"
	"time"
)

// This file decides how a scope or task ended: what counts as a failure, who
// is told of it, and what is made of several.

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second

// A verdict is how a task or scope ended.
type verdict struct {
	err   error       // nil for success
	panic *PanicError // set if it ended in a panic; err is the same then
	echo  bool        // err says only that the task was cancelled
}

// mustRaise reports that v is too loud to be told as a timeout: only whoever
// is given it has heard of it.
func (v *verdict) mustRaise() bool { return v.panic != nil || errors.Is(v.err, ErrGoexit) }

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
	errs      []error     // in order; the first 32
	dropped   int         // how many errs were left out
	panics    *PanicError // the first panic
	hooks     []error     // of exit and abort hooks, observers, discards
	unclaimed []*failure  // of futures; at most 32 at a time
	uncounted int         // unclaimed that found no place
	alarm     *time.Timer // prints panics if it is not raised for long
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

// trap makes a PanicError of a recovered value. A PanicError that passes
// through is not wrapped again.
func trap(t *task, value any) error {
	if p, ok := value.(*PanicError); ok {
		return p
	}
	return &PanicError{Value: value, Stack: debug.Stack(), Task: t.name()}
}

// asPanic returns the PanicError that err is.
func asPanic(h how, err error) *PanicError {
	if h != panicked {
		return nil
	}
	return err.(*PanicError)
}

// fail records a failure of s and cancels s with it. The record comes first:
// whoever sees the cancellation finds its reason.
func (s *scope) fail(err error, p *PanicError) {
	s.mu.Lock()
	f := s.faultsLocked()
	if p == nil {
		f.add(err)
	} else if f.panics == nil {
		f.panics = p
		root, name := s.home, s.t.name()
		f.alarm = time.AfterFunc(panicPatience, func() { root.printLate(p, name, s.stragglers()) })
	} else if p != f.panics {
		f.add(p)
	}
	s.mu.Unlock()
	if p != nil && s.observers != nil {
		s.tell(Event{Kind: EventPanic, Task: p.Task, Err: p})
	}
	s.cancelWith(canceled(err), true)
}

// childFailed deals with the error of a Go task.
func (s *scope) childFailed(t *task, v verdict) {
	switch {
	case v.panic == nil && s.echoes(t, v):
		s.noteEcho()
	case v.panic == nil && v.echo && s.dismissedDaemon(t):
	case v.panic == nil && s.opts != nil && s.opts.onFailure != nil && !errors.Is(v.err, ErrGoexit):
		err := v.err
		if bad := guard("OnFailure", func() { err = s.opts.onFailure(v.err) }); bad != nil {
			s.noteHook(bad)
			err = v.err
		}
		if err != nil {
			s.fail(err, nil)
		}
	default:
		s.fail(v.err, v.panic)
	}
}

// echoes reports that a child's outcome only repeats the cancellation of s.
func (s *scope) echoes(t *task, v verdict) bool {
	return v.echo && s.t.stopped() != nil
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
	if x.kept = len(f.unclaimed) < maxListed; x.kept {
		f.unclaimed = append(f.unclaimed, x)
	} else {
		f.uncounted++
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
		switch {
		case x.v.panic == nil:
			f.add(x.v.err)
		case f.panics == nil:
			f.panics = x.v.panic
		default:
			f.add(x.v.panic)
		}
	}
	f.dropped += f.uncounted
	f.unclaimed, f.uncounted = nil, 0
}

// finish ends s after its body or handler has: it joins everything, runs the
// exit hooks and returns the outcome.
func (s *scope) finish(h how, err error) verdict {
	if s.t.kind != kindBody {
		s.mu.Lock()
		s.t.move(stateJoining) // no abort hook from here on
		busy := s.live > 0
		s.mu.Unlock()
		if busy && s.t.more != nil && s.t.more.slot != nil {
			s.t.more.slot.release()
		}
	}
	echo := h == returned && err != nil && isEcho(err, s.t.stopped())
	if err != nil && !echo {
		s.fail(err, asPanic(h, err))
	}
	if !s.join() {
		return s.abandon(err, echo)
	}
	s.takeUnclaimed()
	for s.runExits(err, echo) || !s.close() {
		s.join() // a hook or a bare goroutine has started more
		s.takeUnclaimed()
	}
	return s.verdict(err, echo)
}

// close marks s as ended unless something new has been started. From here on
// everything is refused, promises are abandoned and the context is done.
func (s *scope) close() bool {
	s.mu.Lock()
	if s.live > 0 || len(s.exits) > 0 {
		s.mu.Unlock()
		return false
	}
	s.ended = true
	var promises []*task
	for p := s.promises; p != nil; p = p.next {
		promises = append(promises, p)
	}
	s.mu.Unlock()
	for _, p := range promises {
		p.self.future().abandon()
	}
	return true
}

// seal cancels the context of an ended scope and takes it off everything it
// is registered with.
func (s *scope) seal() {
	s.mu.Lock()
	s.ended = true
	unwatch, timers := s.unwatch, s.timers
	s.unwatch, s.timers = nil, nil
	if f := s.faults; f != nil && f.alarm != nil {
		timers = append(timers, f.alarm)
	}
	if s.sig.Load() == nil {
		s.sig.Store(endedSignal)
	}
	std := s.std.Load()
	for w := s.listeners; w != nil; w = w.lnext {
		w.notify(gotStop)
	}
	s.mu.Unlock()
	for _, t := range timers {
		t.Stop()
	}
	if unwatch != nil {
		unwatch()
	}
	if std != nil {
		std.cancel(ErrScopeEnded)
	}
}

// verdict seals s and sums up how it ended. echo says that err, the body's
// own, only repeats the cancellation.
func (s *scope) verdict(err error, echo bool) verdict {
	s.takeUnclaimed() // of promises that were rejected meanwhile
	v := s.sum(err, echo)
	s.seal()
	return v
}

// sum sums up how s has gone so far.
func (s *scope) sum(err error, echo bool) verdict {
	sg := s.t.stopped()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	if f == nil {
		f = new(faults)
	}
	var errs []error
	hurt := echo || s.echoed || s.skipped || len(f.errs) > 0 || f.panics != nil
	if sg != nil && !s.own && hurt {
		errs = append(errs, stopped(sg.err, sg.cause))
	}
	real := len(f.errs)+len(f.hooks)+f.dropped > 0
	errs = append(errs, f.errs...)
	if echo && s.t.kind != kindBody && !same(err, sg.err) && !errors.Is(sg.cause, err) {
		errs = append(errs, err) // a handler's own words are kept beside the cause
	}
	errs = append(errs, f.hooks...)
	if p := f.panics; p != nil {
		if rest := joined(s.t, without(errs, p), f.dropped); rest != nil {
			q := *p
			q.others = join(p.others, rest)
			p = &q
		}
		return verdict{err: p, panic: p}
	}
	return verdict{err: joined(s.t, errs, f.dropped), echo: !real && len(errs) > 0}
}

// leafVerdict is verdict for a task that never had a scope half.
func leafVerdict(t *task, err error, sg *signal) verdict {
	if err == nil {
		return verdict{}
	}
	v := verdict{err: err, panic: asPanic(t.how, err)}
	if v.panic != nil || sg == nil {
		return v
	}
	v.echo = isEcho(err, sg)
	stop := stopped(sg.err, sg.cause)
	if v.echo && (same(err, sg.err) || errors.Is(sg.cause, err)) {
		v.err = stop
	} else {
		v.err = joined(t, []error{stop, err}, 0)
	}
	return v
}

// joined makes one error of several: nil, the only one, or a ScopeError.
func joined(t *task, errs []error, dropped int) error {
	switch {
	case len(errs) == 0 && dropped == 0:
		return nil
	case len(errs) == 1 && dropped == 0:
		return errs[0]
	}
	if n := len(errs) - maxListed; n > 0 {
		errs, dropped = errs[:maxListed], dropped+n
	}
	return &ScopeError{Scope: t.name(), Errors: errs, Dropped: dropped}
}

func join(a, b error) error {
	if a == nil {
		return b
	}
	return errors.Join(a, b)
}

// without returns errs less those that say no more than p.
func without(errs []error, p *PanicError) []error {
	var rest []error
	for _, err := range errs {
		if err != error(p) {
			rest = append(rest, err)
		}
	}
	return rest
}

// isEcho reports whether every leaf of err is the error or the cause of the
// context that sg stopped: whether err says nothing but "I was told to stop".
func isEcho(err error, sg *signal) bool {
	if sg == nil {
		return false
	}
	if same(err, sg.err) || same(err, sg.cause) {
		return true
	}
	switch e := err.(type) {
	case *TimeoutError, *PanicError:
		return false // somebody else's, or ours and found above
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return isEcho(inner, sg)
		}
	case interface{ Unwrap() []error }:
		inner := e.Unwrap()
		for _, err := range inner {
			if !isEcho(err, sg) {
				return false
			}
		}
		if len(inner) > 0 {
			return true
		}
	}
	// Package net's own "operation was canceled" is a leaf that says so in Is.
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(sg.err)
}

// same compares errors by identity, which not every type can be.
func same(a, b error) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// guard calls f on a goroutine of its own and waits for it, so that neither a
// panic nor a Goexit of what users gave us takes the caller along. It is used
// for observers, discards and the like, not for handlers.
func guard(name string, f func()) error {
	done := make(chan error, 1)
	go func() {
		how := exited
		var err error
		defer func() {
			if how == exited {
				err = ErrGoexit
			}
			done <- err
		}()
		func() {
			defer func() {
				if how != returned {
					err = trap(&task{more: &more{taskOptions: taskOptions{name: name}}}, recover())
				}
			}()
			f()
			how = returned
		}()
		if how == exited {
			how = panicked
		}
	}()
	return <-done
}
