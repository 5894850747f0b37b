package scheduler

// This file is how tasks are accepted, and what happens when the queue is full.
// A task that was accepted has a number, is counted, and has one outcome.

// A blockedCall is one that waits for room.
type blockedCall struct {
	n      *node
	answer chan error // has room for the one answer it gets, under the worker's mu
}

// isFullLocked reports whether one more task would be more than the capacity, or
// would overtake a call that waits for room.
func (w *ExecutorWorker) isFullLocked() bool {
	return w.o.capacity > 0 && (len(w.blocked) > 0 || w.q.pending() >= w.o.capacity)
}

// admit is called with w.mu held, which it unlocks, and accepts n if there is
// room. Otherwise it does what the options say.
func (w *ExecutorWorker) admit(n *node) error {
	a := afterwards{drops: drops{w: w, reason: reason{Rejected, ErrFull}}}
	if w.isFullLocked() {
		switch w.o.full {
		case Block:
			call := &blockedCall{n, make(chan error, 1)}
			w.blocked = append(w.blocked, call)
			w.mu.Unlock()
			return <-call.answer
		case Fail:
			w.mu.Unlock()
			return ErrFull
		case DropNewest:
			w.acceptLocked(n)
			n.claim(Rejected)
			a.addLocked(n)
			w.q.count(n)
			w.unlock(a)
			return nil
		case DropOldest:
			w.q.dropOldest(Rejected, a.addLocked)
			w.armLocked() // it may have been delayed
		}
	}
	a.wake = w.enqueueLocked(n)
	w.unlock(a)
	return nil
}

// acceptLocked gives n its number: from here on it has one outcome.
func (w *ExecutorWorker) acceptLocked(n *node) {
	n.seq = w.q.accept()
	if w.o.observer != nil {
		n.stamp = clock()
	}
}

// enqueueLocked accepts n and reports whether makeReady is to be called.
func (w *ExecutorWorker) enqueueLocked(n *node) (wake bool) {
	w.acceptLocked(n)
	if n.timed {
		w.q.delay(n)
		w.armFromLocked(n.stamp)
		return false // timerFires asks
	}
	w.queueDueLocked() // what is due by now comes before n
	w.q.push(entry{n: n})
	return w.wakeLocked()
}

// wakeLocked reports whether the scheduler has to be told that there is
// something to do. The caller calls makeReady then, without the lock.
func (w *ExecutorWorker) wakeLocked() bool {
	wake := w.q.length > 0 && !w.active
	w.active = w.active || wake
	return wake
}

// admits reports whether calls that wait for room may be accepted: not when ctx
// is done. It is asked before the lock is taken, see isCancelled.
func (w *ExecutorWorker) admits() bool { return w.o.capacity > 0 && !w.isCancelled() }

// admitBlockedLocked accepts calls that wait for room while there is some, if
// admits has said so, and reports whether makeReady is to be called.
func (w *ExecutorWorker) admitBlockedLocked(admits bool) (wake bool) {
	for admits && len(w.blocked) > 0 && w.q.pending() < w.o.capacity {
		call := w.blocked[0]
		w.blocked[0] = nil
		w.blocked = w.blocked[1:]
		if call.n.timed {
			call.n.stamp = clock() // it has waited
		}
		wake = w.enqueueLocked(call.n) || wake
		call.answer <- nil
	}
	if len(w.blocked) == 0 {
		w.blocked = nil
	}
	return wake
}

// refuseBlockedLocked tells calls that wait for room that there will be none.
// A future is told the cause.
func (w *ExecutorWorker) refuseBlockedLocked(cause error) {
	for _, call := range w.blocked {
		if call.n.future != nil {
			call.answer <- cause
		} else {
			call.answer <- ErrClosed
		}
	}
	w.blocked = nil
}

// placeFreed lets calls that wait for room take the place of a task that
// starts. w has a goroutine, so nobody has to be told of them.
func (w *ExecutorWorker) placeFreed() {
	if !w.admits() {
		return
	}
	w.mu.Lock()
	w.admitBlockedLocked(true)
	w.mu.Unlock()
}
