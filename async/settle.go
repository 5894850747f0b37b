package async

// This file settles futures: it publishes the outcome and wakes the waiters.
//
// What was written before, to the value and to err, is published by storing the
// state as done. A waiter that loads done sees all of it without a lock.

func (f *future) settled() bool { return f.t.state.Load() == stateDone }

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

// takeWaitersLocked empties the list. It returns those that are to be notified
// when the task has left its owner. Those that have lent a slot are told at once:
// so the slot of f's task, which is given up in between, goes to one of them and
// not to a task that has not begun. Channels of Done are closed at once, too.
func (f *future) takeWaitersLocked() (waiters *waiter) {
	for w := f.waiters; w != nil; {
		next := w.next
		w.prev, w.next = nil, nil
		w.serial.Add(1) // it is off the list
		if w.done == nil && w.slot == nil {
			w.taken, w.next = true, waiters
			waiters = w
		} else {
			w.settled()
		}
		w = next
	}
	f.waiters = nil
	return waiters
}

// awaitedLocked reports whether anybody is parked and will be given the outcome. A
// waiter with a channel stands for Done, which gives nothing to anybody.
func (f *future) awaitedLocked() bool {
	if f.wanted.Load() > 0 {
		return true
	}
	for w := f.waiters; w != nil; w = w.next {
		if w.done == nil {
			return true
		}
	}
	return false
}

// unwant notes that an AwaitAll will look no more and reports whether f has
// settled. The settling goroutine reads wanted and settles in one critical
// section. Either that comes before ours, and has counted this AwaitAll as given
// the outcome: then we see f settled. Or it comes after, and does not count it.
func (f *future) unwant() bool {
	if f.settled() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted.Add(-1)
	return f.settled()
}

// doneChannel returns a channel that is closed when f settles: that of a
// waiter that nobody is parked on, which is the first on the list. It is made by
// the first call; every call before f is done returns the same.
func (f *future) doneChannel() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.waiters; w != nil && w.done != nil {
		return w.done
	}
	w := new(waiter)
	w.done = make(chan struct{})
	if f.settled() {
		close(w.done)
	} else {
		f.addWaiterLocked(w)
	}
	return w.done
}
