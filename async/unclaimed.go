package async

import (
	"runtime"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is about outcomes of futures that nobody was given yet. An error is
// the scope's if nobody claims it before the scope ends. A value that has a
// discard hook is discarded then. Those of root tasks wait for the future to be
// collected instead.
//
// An outcome is open when its future settles without a waiter, and leaves that
// state once: it is claimed, when a waiter is given it, or forfeited, when the end
// of the scope, a collection or Cancel takes it. The scope's lock decides which
// comes first. So an error is told once, and a value is given or discarded.

func (x *unclaimed) Error() string {
	if x.v.err == nil {
		return "async: a value that nobody was given"
	}
	return x.v.err.Error()
}

// claim gives x to the caller. It reports false if x was forfeited, or the scope has
// taken it as its own, before: then a value is gone. An error is returned to the caller
// all the same, as a later wait is given the outcome, too.
func (x *unclaimed) claim() bool {
	x.scope.mu.Lock()
	defer x.scope.mu.Unlock()
	if x.state == openClaim && !x.entry.Closed() {
		x.closeLocked(claimed)
	}
	return x.state == claimed
}

// forfeit takes x from everybody and reports whether nobody was given it. From
// now on the future holds instead.
func (x *unclaimed) forfeit(instead error) bool {
	x.scope.mu.Lock()
	defer x.scope.mu.Unlock()
	if x.state != openClaim {
		return false
	}
	x.closeLocked(forfeited)
	x.instead = instead
	return true
}

// closeLocked notes what has become of x, of which its scope keeps nothing from
// here on. It is called once: x was open.
func (x *unclaimed) closeLocked(to claimState) {
	x.state = to
	if x.scope.tally != nil {
		x.scope.tally.Claim(&x.entry)
	}
}

// give returns the outcome of a settled future, and notes that it was given. The
// value is nil if it is in the future and not in an unclaimed outcome: so it is
// without a discard hook. A value that was discarded is replaced by an error.
func (f *future) give() (value discarded, err error) {
	x, open := f.err.(*unclaimed)
	if !open {
		return nil, f.err
	}
	given := x.claim()
	switch {
	case x.beside != nil:
		if x.beside.claim() {
			return x.beside.value, x.v.answer()
		}
		return nil, x.beside.instead
	case !x.isValue:
		return nil, x.v.answer()
	case given:
		return x.value, nil
	default:
		return nil, x.instead
	}
}

// keepUntilCollected has the root told of x, or its value discarded, if f is
// collected before anybody was given it. A root does not end, and whether anybody
// will await f is known only then. x must not refer to f, or f would never be
// collected.
func (x *unclaimed) keepUntilCollected(f *future) {
	task := f.t.name()
	runtime.AddCleanup(f, func(x *unclaimed) {
		if x.forfeit(ErrScopeEnded) {
			go x.tellRoot(task) // users' code: not on the goroutine of the cleanups
		}
	}, x)
}

// unclaimed returns what is to stand in f's err, before it is known whether
// anybody is given the outcome. It asks contexts and users' errors, so it is
// called before any lock is taken.
func (f *future) unclaimed(v *verdict) *unclaimed {
	if p, only := v.err.(*PanicError); only && p != nil && v.panic == p {
		v.panic = p.returned()
		v.err = v.panic
	}
	x := &unclaimed{v: *v, scope: f.t.owner, isValue: v.err == nil, value: v.value}
	x.v.value = nil // kept no longer than in x.value
	if v.err != nil {
		if v.value != nil {
			x.beside, x.value = &unclaimed{scope: x.scope, isValue: true, value: v.value}, nil
		}
		v.fact(x.scope, &x.fact)
		if g, gathers := f.t.self.(gathering); gathers {
			g.tellOwner(v.echo, &x.fact)
		} else {
			x.task = f.t.naming()
		}
		noteQuiet(&f.t, v, &x.fact)
		if x.fact.Class == tally.Echo && !x.fact.Quiet {
			noteCutOff(&f.t, v)
		}
	}
	return x
}

// decideLocked decides to whom the outcome x goes, as f settles. Waiters that
// are parked now will be given it, because a settled result wins over
// everything else.
func (f *future) decideLocked(x *unclaimed) {
	f.err = x
	f.decidePartLocked(x)
	if x.beside != nil {
		f.decidePartLocked(x.beside)
	}
}

// decidePartLocked is decideLocked for an error or a value. f.mu is held: a wait
// either was parked before, and is counted in Awaited, or finds f settled and claims
// x, for which it needs the lock we take now.
func (f *future) decidePartLocked(x *unclaimed) {
	s, awaited := x.scope, f.awaitedLocked()
	if awaited && x.isValue { // most often, and no tally has to know
		x.state = claimed
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.entry.Of = x
	of := tally.Future{
		Awaited: awaited, Told: f.ownerTold, Rooted: s.t.kind == kindRoot, Abandoned: x.v.abandoned, Late: s.summed,
	}
	var decision tally.Decision
	if x.isValue {
		decision = tallyLocked(s).Value(of, &x.entry)
	} else {
		decision = tallyLocked(s).Future(&x.fact, of, &x.entry)
	}
	// x is not visible to anybody before f is settled, so its state is set here
	// without a step. It is open from the first.
	switch decision {
	case tally.Open:
		if !x.isValue {
			failedLocked(s)
		}
	case tally.AtRoot:
		if f.t.kind == kindGroup {
			x.late, x.state = true, forfeited // the root is told when f has settled
		} else {
			x.keepUntilCollected(f)
		}
	case tally.Late:
		x.late, x.state, x.instead = true, forfeited, ErrScopeEnded
	default:
		x.state = claimed
	}
}

// tellRoot deals with the outcome x of f that is the root's.
func (f *future) tellRoot(x *unclaimed) {
	if g, gathers := f.t.self.(gathering); gathers {
		g.tellRoot(&x.fact)
	} else {
		x.tellRoot(f.t.name())
	}
}

// tellRoot deals with an outcome of task for which its scope had summed up already.
func (x *unclaimed) tellRoot(task string) {
	if x.isValue {
		x.discard()
	} else {
		x.scope.home.reportOf(task, x.v.err)
	}
}

// takeUnclaimed makes failures of s of those errors that nobody was given. Once s
// is closed this is the last look: what settles after it is late, and the root is
// told.
func takeUnclaimed(s *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summed = s.ended
	if s.tally != nil {
		s.tally.TakeFailures(unawaited)
		alarmLocked(s)
	}
}

// unawaited is with for an outcome that nobody has claimed. A group needs nobody who
// waits for it: its failure is told as it is.
func unawaited(x *tally.Entry, err error) error {
	of := x.Of.(*unclaimed)
	if of.task == (naming{}) {
		return err
	}
	return UnawaitedError{Task: of.task.in(of.scope)}.with(withoutPath(err))
}

// held is a value that is to be discarded if nobody is given it. It is not kept
// in the future: for a root task it must outlive that.
type held[T any] struct {
	value T
	hook  func(T)
	task  string
}

// discard calls the hook on a goroutine of its own and waits for it.
func (h *held[T]) discard() error {
	return guard("discard hook of "+h.task, func() { h.hook(h.value) })
}

// discard calls the discard hook. What goes wrong in it is the scope's.
func (x *unclaimed) discard() {
	value := x.value
	x.value = nil // the future may be kept for long
	if err := value.discard(); err != nil {
		x.scope.recordHookError(err)
	}
}

// discardUnclaimed discards the values that nobody was given, and reports
// whether there were any. One at a time is taken under the lock and discarded
// without it: the hook is a user's, and may await the future of another.
func discardUnclaimed(s *scope) bool {
	for some := false; ; some = true {
		s.mu.Lock()
		e := s.tally.TakeValue()
		if e == nil {
			s.mu.Unlock()
			return some
		}
		x := e.Of.(*unclaimed)
		x.state, x.instead = forfeited, ErrScopeEnded
		s.mu.Unlock()
		if s.t.kind != kindBody {
			s.t.retire() // the hook is no part of the handler
		}
		x.discard()
	}
}

// OnDiscard sets what happens to a value that nobody will be given, so that
// connections and files are closed: every value is given to a waiter, or f is
// called with it exactly once. That is a value
//
//   - that comes after a waiter was told of an expiry, or after [Future.Cancel],
//   - of a Resolve that was not the first,
//   - beside an error of what the handler has started,
//   - that nobody was given when the scope ends; of a root task, when its future
//     is collected.
//
// f is called on a goroutine of its own, with no lock held, and is waited for: before
// that Resolve returns, before the task settles, or before the scope ends. Later
// waits are given the error that the first waiter was told, else [ErrScopeEnded].
// A panic of f is an error of the scope.
//
// A value that nobody awaits is kept until its scope ends, which in the scope of a server
// is for ever: there await the future, or have the handler close what nobody wants.
//
// A nil f panics, and so does starting a future of another type than f takes.
func OnDiscard[T any](f func(T)) TaskOption {
	if f == nil {
		panic("async: OnDiscard(nil): leave the option out instead")
	}
	return taskOption(func(t *taskOptions) { t.discard = f })
}
