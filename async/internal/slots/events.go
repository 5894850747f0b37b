package slots

// This file is what happens to tasks and waits. Every function is one event.
// Those that may let others go on append the grants to out and return it.

// Submit says that t has been started. It reports whether t may start at once;
// if not, t queues, and a later grant starts it. A task that was retired on the
// way does neither.
func (t *Task[T, W]) Submit() (granted bool) {
	if t.state == Retired {
		return false
	}
	if !t.obtain(t.Limiter) {
		t.move(Queued)
		return false
	}
	t.goOn()
	return true
}

// Withdraw takes t out of the queue for good, and reports whether t was there:
// if it was, t never starts, and if not, t is left as it was. What t was
// granted before stays granted, so of a withdrawal and a grant exactly one
// decides.
func (t *Task[T, W]) Withdraw(out []Grant[T, W]) (withdrawn bool, _ []Grant[T, W]) {
	if t.state != Queued {
		return false, out
	}
	at := t.leaveQueue()
	t.move(Retired)
	return true, t.giveUp(at, out)
}

// Begin says that an executor has begun with t. It reports whether t may run at
// once. If it may not, its slots have been recalled: w is told when it has them
// again, or when t is retired.
func (t *Task[T, W]) Begin(w *Wait[T, W], out []Grant[T, W]) (runs bool, _ []Grant[T, W]) {
	switch t.state {
	case Handed:
		t.leaveExecutor()
		t.move(Running)
		return true, out
	case Retired: // cancelled, or refused, in the meantime
		return true, out
	}
	t.move(Returning)
	if t.obtainFor(w) {
		t.granted() // to the caller, who need not wait
		return true, out
	}
	return false, t.Limiter.recall(out)
}

// Lend says that w begins, a wait of t. It reports whether w lends the slots of
// t. Of several waits of one task at the same time all do.
//
// While t queues to have its slots again, another wait of it has ended. That
// one goes on without: t waits again, so it has no use for slots.
func (t *Task[T, W]) Lend(w *Wait[T, W], out []Grant[T, W]) (lent bool, _ []Grant[T, W]) {
	if t.state == Retired {
		return false, out
	}
	switch t.state {
	case Returning:
		out = t.stopReturning(out)
		t.move(Lent)
	case Lent:
	default:
		t.move(Lent)
		out = t.giveUp(nil, out)
	}
	t.loans++
	w.task, w.state = t, lending
	return true, out
}

// Return says that w, which lends, has come to its end in turn. When the last
// wait of a task does so, w is told when the task has its slots again; one of
// several is told at once, as it is that of a goroutine which somebody started
// by hand. To say it again changes nothing.
func (w *Wait[T, W]) Return(out []Grant[T, W]) []Grant[T, W] {
	if w.state != lending {
		return out
	}
	t := w.task
	t.loans--
	if t.state == Lent && t.loans == 0 {
		t.move(Returning)
		if t.obtainFor(w) {
			return append(out, t.granted())
		}
		return t.Limiter.recall(out)
	}
	w.state = told
	return append(out, Grant[T, W]{t, w})
}

// obtainFor has t obtain its slots, or queue for them, on behalf of w.
func (t *Task[T, W]) obtainFor(w *Wait[T, W]) bool {
	w.task, w.state, t.returning = t, queueing, w
	return t.obtain(t.Limiter)
}

// TakeBack says that w, which has lent, was cut short. If nothing has told w
// that it may go on, its task has its slots again at once, unless another wait
// of it lends them, or it needs none. Slots that are not there are taken all
// the same.
//
// TakeBack reports whether w stands in a grant already. If so, whoever was
// given that has notified w or is about to.
func (w *Wait[T, W]) TakeBack() (isTold bool) {
	t := w.task
	switch w.state {
	case told:
		return true
	case lending:
		t.loans--
		if t.state == Lent && t.loans == 0 {
			t.overdraw(t.Limiter)
		}
	case queueing:
		at := t.leaveQueue() // it keeps what it holds inside
		t.returning = nil
		t.overdraw(at)
	}
	w.state = idle
	return false
}

// overdraw has t take a slot of l and of every limiter around it, free or not.
func (t *Task[T, W]) overdraw(l *Limiter[T, W]) {
	for ; l != nil; l = l.outer {
		l.free--
	}
	t.move(Running)
}

// stopReturning takes t out of the queue in which it waits for its slots. Its
// wait goes on without them.
func (t *Task[T, W]) stopReturning(out []Grant[T, W]) []Grant[T, W] {
	at := t.leaveQueue()
	w := t.returning
	t.returning, w.state = nil, told
	return t.giveUp(at, append(out, Grant[T, W]{t, w}))
}

// Retire says that t has ended: its handler has returned, or it was cancelled
// or refused before it began. It gives up what it holds and leaves where it
// queues. Waits of it that last go on lending nothing. To say it again changes
// nothing.
func (t *Task[T, W]) Retire(out []Grant[T, W]) []Grant[T, W] {
	switch t.state {
	case Queued:
		_, out = t.Withdraw(out)
		return out
	case Handed:
		t.leaveExecutor()
		out = t.giveUp(nil, out)
	case Running:
		out = t.giveUp(nil, out)
	case Returning:
		out = t.stopReturning(out)
	case Retired:
		return out
	}
	t.move(Retired)
	return out
}
