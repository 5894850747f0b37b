package async

// This file settles futures: it publishes the outcome and wakes the waiters.
//
// What was written before, to the value and to err, is published by storing the
// state as done. A waiter that loads done sees all of it without a lock.

// settle publishes the outcome, leaves the owner and wakes the waiters.
// Storing the state is what happens before every read of the value and the
// error. Waking comes last: measured, it saves a fifth of Execute and Await
// that the woken goroutine finds the owner's lock free. Only waiters that want
// their slot back are seen to before we give up ours.
func (f *future) settle(v *verdict) {
	waiters := f.publish(v)
	f.t.leave()
	wake(waiters)
}

// publish makes v the outcome and returns the waiters to wake. The caller must have
// won the right to settle f, by being its task, or by take for a promise.
func (f *future) publish(v *verdict) (waiters *waiter) {
	var x *unclaimed
	if v.err != nil || v.value != nil {
		x = f.unclaimed(v)
	}
	f.mu.Lock()
	// Whether anybody is given x is decided, and f done, in one critical section. A
	// waiter registers under the same lock: it is counted here, or finds f done.
	if x != nil {
		f.decideLocked(x)
	}
	f.t.move(stateDone)
	waiters = f.takeWaitersLocked()
	f.mu.Unlock()
	for ; x != nil; x = x.beside {
		if x.late {
			f.tellRoot(x)
		}
	}
	return waiters
}

// wake tells waiters that their future has settled. No lock is held: a woken
// goroutine may run at once.
func wake(waiters *waiter) {
	for w := waiters; w != nil; {
		next := w.next
		w.next = nil // w is the waiter's again once it is notified
		w.notify(gotSettled)
		w = next
	}
}

// promiseValue has every waiter from now on be given the value, and returns
// nil; or it returns what a waiter was told before.
func (f *future) promiseValue() (expiry error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	expiry = f.t.more.expiryTold
	f.valuePromised = expiry == nil
	return expiry
}

// settleUnowned settles a future that belongs to no scope.
func (f *future) settleUnowned(err error) {
	f.t.inner.Store(endedScope)
	f.err = err
	f.t.state.Store(stateDone)
}

// tellOwner notes that the owner has been told why instead of the outcome: an
// expiry, or that it has cancelled. It reports false if f has settled, which
// wins, or its value is promised already. The first error told is what a future
// with a discard hook settles with.
func (f *future) tellOwner(why error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled() || f.valuePromised {
		return false
	}
	f.ownerTold = true
	if m := f.t.more; m != nil && (m.discard != nil || f.t.kind == kindChoice) && m.expiryTold == nil {
		m.expiryTold = why
	}
	return true
}

// renounce notes that the owner of a future that has settled wants nothing of
// it: an error counts as given, and a value that nobody was given is discarded.
func (f *future) renounce(cause error) {
	if !f.settled() {
		return
	}
	x, open := f.err.(*unclaimed)
	switch {
	case !open:
	case !x.isValue:
		if !x.v.mustRaise() { // those are given only by being returned
			x.claim()
		}
	case x.forfeit(canceled(cause).asError()):
		x.discard()
	}
}

// settleLeader is settle for a leader that has ended without a failure. It is done
// before its scope is cancelled: a wait that this ends finds the outcome.
func (f *future) settleLeader(v *verdict) {
	waiters := f.publish(v)
	f.t.lead()
	f.t.leave()
	wake(waiters)
}
