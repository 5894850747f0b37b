package scheduler

// A lifecycle is where a worker stands: whether a goroutine is to come for it, and how far its
// end is. It is plain data: the caller of a method holds the worker's lock and says how many
// tasks are queued. The consequence of an answer is done by the caller.
type lifecycle struct {
	// active: the worker is in the line for a goroutine, or has one. The goroutine that sets
	// it puts the worker in the line. It is cleared only where the queue is seen to be empty,
	// or is made empty: so what is queued while it is true is seen.
	active bool
	// hasGoroutine: a goroutine of the pool is at the worker. It implies active.
	hasGoroutine bool
	// refusing: nothing more is accepted. It is never cleared.
	refusing bool
	// closed: refusing, and no task is queued or runs. It is set once.
	closed bool
	// undone is why tasks that should have run never will, nil if there are none.
	// It is set once, before closed.
	undone error
	// cutShort is undone, if Drain is told of it.
	cutShort error
	// over: the scope and all waits were told of the end, and nothing is registered
	// anywhere. It is set once, after closed.
	over bool
}

// wake reports whether the dispatcher has to be told that there is something to do.
func (l *lifecycle) wake(queued int) bool {
	wake := queued > 0 && !l.active
	l.active = l.active || wake
	return wake
}

// arrive notes that a goroutine has come.
func (l *lifecycle) arrive() { l.hasGoroutine = true }

// depart notes that the goroutine leaves. If there is more to do the worker is to be put in
// the line again; else nobody will look at it until it is woken.
func (l *lifecycle) depart(queued int) (more bool) {
	more = queued > 0
	l.hasGoroutine, l.active = false, more
	return more
}

// isIdle reports that nothing is queued and no goroutine is at the worker, whether
// or not one is still to come for it.
func (l *lifecycle) isIdle(queued int) bool { return queued == 0 && !l.hasGoroutine }

// settle reports whether the worker is idle, and, once, that it has come to its end with that.
func (l *lifecycle) settle(queued int) (idle, ended bool) {
	idle = l.isIdle(queued)
	ended = idle && l.refusing && !l.closed
	l.closed = l.closed || ended
	return idle, ended
}

// refuseIfIdle has a worker that has nothing to do, now or later, accept nothing more. It
// reports false if the worker has something to do, or refuses already.
func (l *lifecycle) refuseIfIdle(queued, pending int) bool {
	if l.refusing || pending > 0 || !l.isIdle(queued) {
		return false
	}
	l.refusing = true
	return true
}

// leaveUndone notes that tasks that should have run never will, and why; cut: Drain is told of
// that, too. It reports true if that is the first of its kind.
func (l *lifecycle) leaveUndone(why error, cut bool) bool {
	if l.undone != nil {
		return false
	}
	l.undone = why
	if cut {
		l.cutShort = why
	}
	return true
}
