package slots

import "slices"

// This file is what happens to tasks and waits. Every exported function is one
// event. Take tells which tasks and waits may go on because of it.

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
	t.begins()
	return true
}

// Withdraw takes t out of the queue for good, and reports whether t was there:
// if it was, t never starts, and if not, t is left as it was. A slot that t was granted before
// stays granted, so of a withdrawal and a grant exactly one decides.
func (t *Task[T, W]) Withdraw() (withdrawn bool) {
	if t.state != Queued {
		return false
	}
	at := t.leaveQueue()
	t.move(Retired)
	t.giveUp(at)
	return true
}

// Begin says that an executor has begun with t. It reports whether t may run at
// once. If it may not, its slots have been recalled: w is told when it has them
// again, or when t is retired.
func (t *Task[T, W]) Begin(w *Wait[T, W]) (runs bool) {
	switch t.state {
	case Handed: // it has held its slots all the time
		t.leaveExecutor()
		t.move(Running)
		return true
	case Retired: // cancelled, or refused, in the meantime
		return true
	}
	return t.returnFor(w)
}

// Lend says that w begins, a wait of t. It reports whether w lends the slots of
// t. All do, of several waits of one task at the same time.
//
// While t queues to have its slots again, another wait of it has ended. The other goes on without:
// t waits again, so it has no use for slots.
func (t *Task[T, W]) Lend(w *Wait[T, W]) (lent bool) {
	if t.state == Retired {
		return false
	}
	switch t.state {
	case Returning:
		t.stopReturning()
		t.move(Lent)
	case Lent: // for another wait already
	default:
		// The state comes first: what is handed out must not come back to t.
		t.move(Lent)
		t.giveUp(nil)
	}
	t.loans++
	w.state = lending
	return true
}

// Return says that w, a wait of t that lends, has come to its end in turn. When the last
// wait of a task does so, w is told when the task has its slots again; one of
// several is told at once, as it is that of a goroutine which somebody started
// by hand. To say it again changes nothing.
func (t *Task[T, W]) Return(w *Wait[T, W]) {
	if w.state != lending {
		return
	}
	t.loans--
	// A task that is not Lent has retired: its wait wants no slot. In all three
	// cases nothing more is waited for.
	if t.state != Lent || t.loans > 0 || t.returnFor(w) {
		w.state = inGrant
		t.grant(w)
	}
}

// returnFor has t obtain its slots again, on behalf of w, and reports whether it
// has them. If not, t queues for them.
func (t *Task[T, W]) returnFor(w *Wait[T, W]) bool {
	t.move(Returning)
	w.state, t.returning = queueing, w
	if t.obtain(t.Limiter) {
		t.hasReturned()
		return true
	}
	t.Limiter.recall()
	return false
}

// TakeBack says that w, a wait of t that has lent, was cut short. If nothing has
// told w that it may go on, t has its slots again at once, unless another wait
// of it lends them, or it needs none. Slots that are not there are taken all
// the same.
//
// TakeBack reports whether w stands in a grant already. If so, the caller of Take
// that was given this grant has notified w or is about to.
func (t *Task[T, W]) TakeBack(w *Wait[T, W]) (granted bool) {
	switch w.state {
	case inGrant:
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
// Nobody else is let go before as many have been given up.
func (t *Task[T, W]) overdraw(l *Limiter[T, W]) {
	for ; l != nil; l = l.outer {
		l.free--
	}
	t.move(Running)
}

// stopReturning takes t out of the queue in which it waits for its slots. Its
// wait goes on without them.
func (t *Task[T, W]) stopReturning() {
	at := t.leaveQueue()
	w := t.returning
	t.returning, w.state = nil, inGrant
	t.grant(w)
	t.giveUp(at)
}

// Cut says that l, with all that is inside it, is no part of the limiters around it any more:
// its tasks give back what they hold of those, and need nothing of them from now on. Those that
// queue there go on.
func (l *Limiter[T, W]) Cut() {
	outside := l.outer
	if outside == nil {
		return
	}
	queueing := l.queueOutside()
	held := l.size - l.free - len(queueing) // by those that hold a slot of each
	for _, t := range queueing {
		at := t.leaveQueue()
		for o := outside; o != at; o = o.outer {
			o.free++
		}
	}
	l.outer = nil
	for o := outside; o != nil; o = o.outer {
		o.free += held
		o.reachable -= l.reachable
	}
	for _, t := range queueing {
		t.granted()
	}
	for o := outside; o != nil; o = o.outer {
		o.handOut()
	}
}

// queueOutside returns the tasks that hold a slot of l and queue at a limiter around it.
func (l *Limiter[T, W]) queueOutside() []*Task[T, W] {
	tasks := slices.Clone(l.between)
	for o := l.outer; o != nil; o = o.outer {
		for t := o.returning.first; t != nil; t = t.next {
			if t.Limiter.isInside(l) {
				tasks = append(tasks, t)
			}
		}
	}
	return tasks
}

// Retire says that t has ended: its handler has returned, or it was cancelled
// or refused before it began. It gives up what it holds and leaves where it
// queues. Waits of it that last go on lending nothing. To say it again changes
// nothing.
func (t *Task[T, W]) Retire() {
	switch t.state {
	case New, Recalled, Lent: // it holds nothing, and queues nowhere
	case Queued:
		t.Withdraw()
		return
	case Handed:
		t.leaveExecutor()
		t.giveUp(nil)
	case Running:
		t.giveUp(nil)
	case Returning:
		t.stopReturning()
	case Retired:
		return
	}
	t.move(Retired)
}
