package async

// This file is the list of those who wait for a future.

// addWaiter puts w on f's list; false if f has settled.
func (f *future) addWaiter(w *waiter) bool {
	f.mu.Lock()
	open := !f.settled()
	if open {
		f.addWaiterLocked(w)
	}
	f.mu.Unlock()
	return open
}

func (f *future) addWaiterLocked(w *waiter) {
	w.taken = false
	w.on.Store(f)
	w.serial.Add(1)
	switch first := f.waiters; {
	case first == nil: // most often
		f.waiters = w
	case first.done != nil: // stays first, see doneChannel
		w.prev, w.next, first.next = first, first.next, w
		if w.next != nil {
			w.next.prev = w
		}
	default:
		first.prev, w.next, f.waiters = w, first, w
	}
}

// removeWaiter takes w off f's list, unless settling f has. It reports whether
// nobody will notify w for f any more.
func (f *future) removeWaiter(w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.taken {
		return false
	}
	if w.prev == nil && f.waiters != w {
		return true
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		f.waiters = w.next
	}
	w.prev, w.next = nil, nil
	w.serial.Add(1)
	return true
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
