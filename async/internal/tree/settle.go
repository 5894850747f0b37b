package tree

import (
	"runtime"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file settles futures: it publishes the outcome, wakes the waiters, and keeps outcomes
// that nobody was given yet.
//
// Whatever was written before, to the value and to Err, is published by storing the
// state as done. A waiter that loads done sees all of it without a lock.
//
// An error that nobody was given is the scope's if nobody claims it before the scope ends. A
// value that has a discard hook is discarded then. Those of root tasks wait for the future to
// be collected instead.
//
// An outcome is open when its future settles without a waiter, and leaves that
// state once: it is claimed, when a waiter is given it, or forfeited, when the end
// of the scope, a collection or Cancel takes it. The scope's lock decides which
// comes first. So an error is told once, and a value is given or discarded.

// Settle publishes the outcome, leaves the owner and wakes the waiters.
// Storing the state is what happens before every read of the value and the
// error. Waking comes last: measured, it saves a fifth of Execute and Await
// that the woken goroutine finds the owner's lock free. Only waiters that want
// their slot back are seen to before we give up ours. A leader, which has ended without a
// failure, cancels its scope in between: a wait that this ends finds the outcome.
func (f *Future) Settle(v *Verdict, leads bool) {
	waiters := f.Publish(v)
	if leads {
		f.Task.lead()
	}
	f.Task.Leave()
	Wake(waiters)
}

// Publish makes v the outcome and returns the waiters to wake. The caller must have
// won the right to settle f, by being its task, or by Take for a promise.
func (f *Future) Publish(v *Verdict) (waiters *Waiter) {
	var x *Unclaimed
	if v.Err != nil || v.Value != nil {
		x = f.unclaimed(v)
	}
	f.Mu.Lock()
	// Whether anybody is given x is decided, and f done, in one critical section. A
	// waiter registers under the same lock: it is counted here, or finds f done.
	if x != nil {
		f.Err = x
	}
	for part := x; part != nil; part = part.beside {
		f.decideLocked(part)
	}
	f.Task.Move(StateDone)
	waiters = f.takeWaitersLocked()
	f.Mu.Unlock()
	for ; x != nil; x = x.beside {
		if x.late {
			f.tellRoot(x)
		}
	}
	return waiters
}

// Wake tells waiters that their future has settled. No lock is held: a woken
// goroutine may run at once.
func Wake(waiters *Waiter) {
	for w := waiters; w != nil; {
		next := w.next
		w.next = nil // w is the waiter's again once it is notified
		w.notify(gotSettled)
		w = next
	}
}

// PromiseValue has every waiter from now on be given the value, and returns
// nil; or it returns what a waiter was told before.
func (f *Future) PromiseValue() (expiry error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	expiry = f.Task.More.expiryTold
	f.valuePromised = expiry == nil
	return expiry
}

// SettleUnowned settles a future that belongs to no scope.
func (f *Future) SettleUnowned(err error) {
	f.Task.Inner.Store(endedScope)
	f.Err = err
	f.Task.State.Store(StateDone)
}

// TellHolder notes that whoever holds the handle of f has been told why instead of the outcome: an
// expiry, or that it has cancelled. It reports false if f has settled, which
// wins, or its value is promised already. The first error told is what a future
// with a discard hook settles with.
func (f *Future) TellHolder(why error) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Settled() || f.valuePromised {
		return false
	}
	f.HolderTold = true
	if m := f.Task.More; m != nil && (m.Discard != nil || f.Task.Kind == KindChoice) && m.expiryTold == nil {
		m.expiryTold = why
	}
	return true
}

// Renounce notes that the holder of a future that has settled wants nothing of
// it: an error counts as given, and a value that nobody was given is discarded.
func (f *Future) Renounce(cause error) {
	if !f.Settled() {
		return
	}
	x, open := f.Err.(*Unclaimed)
	switch {
	case !open:
	case !x.isValue:
		if !x.Verdict.MustRaise() { // those are given only by being returned
			x.Claim()
		}
	case x.forfeit(Canceled(cause).AsError()):
		x.Discard()
	}
}

// Error returns the text of what nobody was given.
func (x *Unclaimed) Error() string {
	if x.Verdict.Err == nil {
		return "async: a value that nobody was given"
	}
	return x.Verdict.Err.Error()
}

// Claim gives x to the caller. It reports false if x was forfeited, or the scope has
// taken it as its own, before: then a value is gone. An error is returned to the caller
// all the same, as a later wait is given the outcome, too.
func (x *Unclaimed) Claim() bool {
	x.scope.Mu.Lock()
	defer x.scope.Mu.Unlock()
	if x.state == openClaim && !x.entry.Closed() {
		x.closeLocked(claimed)
	}
	return x.state == claimed
}

// forfeit takes x from everybody and reports whether nobody was given it. From
// now on the future holds instead.
func (x *Unclaimed) forfeit(instead error) bool {
	x.scope.Mu.Lock()
	defer x.scope.Mu.Unlock()
	if x.state != openClaim {
		return false
	}
	x.closeLocked(forfeited)
	x.instead = instead
	return true
}

// closeLocked notes what has become of x, of which its scope keeps nothing from
// here on. It is called once: x was open.
func (x *Unclaimed) closeLocked(to claimState) {
	x.state = to
	if x.scope.Tally != nil {
		x.scope.Tally.Claim(&x.entry)
	}
}

// Give returns the outcome of a settled future, and notes that it was given. The
// value is nil if it is in the future and not in an unclaimed outcome: so it is
// without a discard hook. A value that was discarded is replaced by an error.
func (f *Future) Give() (value Discarded, err error) {
	x, open := f.Err.(*Unclaimed)
	if !open {
		return nil, f.Err
	}
	given := x.Claim()
	switch {
	case x.beside != nil:
		if x.beside.Claim() {
			return x.beside.value, x.Verdict.answer()
		}
		return nil, x.beside.instead
	case !x.isValue:
		return nil, x.Verdict.answer()
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
func (x *Unclaimed) keepUntilCollected(f *Future) {
	task := f.Task.Name()
	runtime.AddCleanup(f, func(x *Unclaimed) {
		if x.forfeit(ErrScopeEnded) {
			go x.tellRoot(task) // users' code: not on the goroutine of the cleanups
		}
	}, x)
}

// unclaimed returns what is to stand in f.Err, before it is known whether
// anybody is given the outcome. It asks contexts and users' errors, so it is
// called before any lock is taken.
func (f *Future) unclaimed(v *Verdict) *Unclaimed {
	if v.Panic != nil && Codec.PanicIn(v.Err) == v.Panic {
		v.Panic = v.Panic.returned()
		v.Err = v.Panic.AsError()
	}
	x := &Unclaimed{Verdict: *v, scope: f.Task.Owner, isValue: v.Err == nil, value: v.Value}
	x.Verdict.Value = nil // kept no longer than in x.value
	if v.Err != nil {
		if v.Value != nil {
			x.beside, x.value = &Unclaimed{scope: x.scope, isValue: true, value: v.Value}, nil
		}
		v.fact(x.scope, &f.Task, &x.fact)
		if g, gathers := f.Task.Self.(gathering); gathers {
			g.TellOwner(v.Echo, &x.fact)
		} else {
			x.task = f.Task.Naming()
		}
		if x.fact.Class == tally.Echo && !x.fact.Quiet {
			noteCutOff(&f.Task, v)
		}
	}
	return x
}

// decideLocked decides to whom x goes, an error or a value, as f settles. Waiters that are
// parked now will be given it, because a settled result wins over everything else.
//
// f.Mu is held: a wait either was parked before, and is counted in Awaited, or finds f
// settled and claims x, for which it needs the lock we take now.
func (f *Future) decideLocked(x *Unclaimed) {
	s, awaited := x.scope, f.AwaitedLocked()
	if awaited && x.isValue { // most often, and no tally has to know
		x.state = claimed
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	x.entry.Outcome = x
	future := tally.Future{
		Awaited: awaited, Told: f.HolderTold, Rooted: s.Task.Kind == KindRoot,
		Abandoned: x.Verdict.abandoned, Late: s.summed,
	}
	var decision tally.Decision
	if x.isValue {
		decision = tallyLocked(s).Value(future, &x.entry)
	} else {
		decision = tallyLocked(s).Future(&x.fact, future, &x.entry)
	}
	// x is not visible to anybody before f is settled, so its state is set here
	// without a step. It is open from the first.
	switch decision {
	case tally.Open:
		if !x.isValue {
			failedLocked(s)
		}
	case tally.AtRoot:
		if f.Task.Kind == KindGroup {
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
func (f *Future) tellRoot(x *Unclaimed) {
	if g, gathers := f.Task.Self.(gathering); gathers {
		g.TellRoot(&x.fact)
	} else {
		x.tellRoot(f.Task.Name())
	}
}

// tellRoot deals with an outcome of task for which its scope had summed up already.
func (x *Unclaimed) tellRoot(task string) {
	if x.isValue {
		x.Discard()
	} else {
		x.scope.Home.reportOf(task, x.Verdict.Err)
	}
}

// Unawaited is what a tally tells for an outcome that nobody has claimed. A group needs nobody who
// waits for it: its failure is told as it is.
func Unawaited(x *tally.Entry, err error) error {
	outcome := x.Outcome.(*Unclaimed)
	if outcome.task == (Naming{}) {
		return err
	}
	return Codec.Unawaited(outcome.task.In(outcome.scope), withoutPath(err))
}

// Discard calls the discard hook. A failure of the hook is the scope's.
func (x *Unclaimed) Discard() {
	value := x.value
	x.value = nil // the future may be kept for long
	if err := value.Discard(); err != nil {
		x.scope.RecordHookError(err)
	}
}
