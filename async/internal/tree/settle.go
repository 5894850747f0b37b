package tree

// This file settles futures: it publishes the outcome and wakes the waiters.
//
// What was written before, to the value and to err, is published by storing the
// state as done. A waiter that loads done sees all of it without a lock.

// Settle publishes the outcome, leaves the owner and wakes the waiters.
// Storing the state is what happens before every read of the value and the
// error. Waking comes last: measured, it saves a fifth of Execute and Await
// that the woken goroutine finds the owner's lock free. Only waiters that want
// their slot back are seen to before we give up ours.
func (f *Future) Settle(v *Verdict) {
	waiters := f.Publish(v)
	f.Task.Leave()
	Wake(waiters)
}

// Publish makes v the outcome and returns the waiters to wake. The caller must have
// won the right to settle f, by being its task, or by take for a promise.
func (f *Future) Publish(v *Verdict) (waiters *Waiter) {
	var x *Unclaimed
	if v.Err != nil || v.Value != nil {
		x = f.unclaimed(v)
	}
	f.Mu.Lock()
	// Whether anybody is given x is decided, and f done, in one critical section. A
	// waiter registers under the same lock: it is counted here, or finds f done.
	if x != nil {
		f.decideLocked(x)
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

// TellOwner notes that the owner has been told why instead of the outcome: an
// expiry, or that it has cancelled. It reports false if f has settled, which
// wins, or its value is promised already. The first error told is what a future
// with a discard hook settles with.
func (f *Future) TellOwner(why error) bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Settled() || f.valuePromised {
		return false
	}
	f.OwnerTold = true
	if m := f.Task.More; m != nil && (m.Discard != nil || f.Task.Kind == KindChoice) && m.expiryTold == nil {
		m.expiryTold = why
	}
	return true
}

// Renounce notes that the owner of a future that has settled wants nothing of
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

// SettleLeader is settle for a leader that has ended without a failure. It is done
// before its scope is cancelled: a wait that this ends finds the outcome.
func (f *Future) SettleLeader(v *Verdict) {
	waiters := f.Publish(v)
	f.Task.lead()
	f.Task.Leave()
	Wake(waiters)
}
