package slots

import "slices"

// A Limiter bounds how many tasks run at once: its own, and those of the
// limiters inside it.
type Limiter[T, W any] struct {
	outer     *Limiter[T, W] // nil for the outermost
	outermost *Limiter[T, W] // itself, if there is none around it
	size      int            // how many slots there are; never changed

	// free is how many slots nobody holds. It is below 0 while more are held
	// than there are, because waits were cut short.
	//
	// Between two events: if free is above 0, nobody queues here.
	free int

	// returning are the tasks that want a slot again, first come first. They go
	// before all others, so that what is under way ends before anything is begun:
	// a divide and conquer then has few tasks alive at a time.
	returning list[T, W]
	// starting are the tasks that want to start.
	starting queue[T, W]
	// between are the tasks that hold a slot of this limiter and queue to start at
	// one around it, in the order in which they came there: at most size. It has
	// none if all have their slots or queue here, as where limits are not nested.
	//
	// Between two events: if a task is in returning, there are none.
	between []*Task[T, W]

	// handed and answer are kept by the outermost limiter, for all inside it.
	//
	// handed: tasks in state Handed, the latest last. answer: the grants since the
	// last Take, in the order in which they came.
	handed list[T, W]
	answer []Grant[T, W]
	// reachable is how many tasks are Handed that hold a slot of this limiter.
	reachable int
}

// NewLimiter returns a limiter of n slots inside outer, which may be nil.
//
// If it could never be what keeps a task from running, that is outer: every
// task inside holds a slot of both, so one that is not smaller than outer is
// never the first to run out. A chain of limiters therefore gets smaller with
// each step inwards, and is short.
func NewLimiter[T, W any](n int, outer *Limiter[T, W]) *Limiter[T, W] {
	if outer != nil && n >= outer.size {
		return outer
	}
	l := &Limiter[T, W]{outer: outer, size: n, free: n}
	if l.outermost = l; outer != nil {
		l.outermost = outer.outermost
	}
	return l
}

// Take appends to room what is to be done for the events since it was called
// last, for all limiters inside the outermost one, and returns it.
func (l *Limiter[T, W]) Take(room []Grant[T, W]) []Grant[T, W] {
	o := l.outermost
	room = append(room, o.answer...)
	clear(o.answer) // keeps nothing alive
	o.answer = o.answer[:0]
	return room
}

// NewLayer returns a limiter inside outer that changes nothing until it is cut.
func NewLayer[T, W any](outer *Limiter[T, W]) *Limiter[T, W] {
	return &Limiter[T, W]{outer: outer, outermost: outer.outermost, size: outer.size, free: outer.size}
}

// isInside reports whether a slot of l is held only together with one of outer.
func (l *Limiter[T, W]) isInside(outer *Limiter[T, W]) bool {
	for ; l != nil; l = l.outer {
		if l == outer {
			return true
		}
	}
	return false
}

// hasRoomFor reports whether t may take a slot of l at once: one is free, and
// no task queues that goes first.
func (l *Limiter[T, W]) hasRoomFor(t *Task[T, W]) bool {
	return l.free > 0 && l.returning.empty() && (t.returning != nil || l.starting.empty())
}

// obtain has t take a slot of l and of every limiter around it, or queue at the
// first that has no room. It reports whether t has them all now.
func (t *Task[T, W]) obtain(l *Limiter[T, W]) bool {
	for ; l != nil; l = l.outer {
		if !l.hasRoomFor(t) {
			t.queueAt(l)
			return false
		}
		l.free--
	}
	return true
}

// queueAt puts t into the queue of l.
func (t *Task[T, W]) queueAt(l *Limiter[T, W]) {
	t.at = l
	if t.returning != nil {
		l.returning.push(t)
		return
	}
	l.starting.push(t)
	for in := t.Limiter; in != l; in = in.outer {
		in.between = append(in.between, t)
	}
}

// leaveQueue takes t out of the queue that it is in, and returns where it was.
func (t *Task[T, W]) leaveQueue() (at *Limiter[T, W]) {
	at, t.at = t.at, nil
	if t.returning != nil {
		at.returning.remove(t)
		return at
	}
	at.starting.remove(t)
	for in := t.Limiter; in != at; in = in.outer {
		i := slices.Index(in.between, t)
		in.between = slices.Delete(in.between, i, i+1)
	}
	return at
}

// giveUp frees the slots that t holds of the limiters inside end, all if that
// is nil, and hands them out. It does so from the inside out: a task that gets
// the inner one queues for the next in time to get that, too.
func (t *Task[T, W]) giveUp(end *Limiter[T, W]) { t.giveUpFrom(t.Limiter, end) }

// giveUpFrom is giveUp for those of l and of what is around it.
func (t *Task[T, W]) giveUpFrom(l, end *Limiter[T, W]) {
	for ; l != end; l = l.outer {
		l.free++
		l.handOut()
	}
	t.Limiter.recall() // not before all are free: it would take too many
}

// handOut gives the free slots of l to the tasks and waits that queue for them.
func (l *Limiter[T, W]) handOut() {
	for l.free > 0 {
		t := l.returning.first
		if t == nil {
			t = l.starting.first()
		}
		if t == nil {
			break
		}
		t.leaveQueue()
		l.free--
		if t.obtain(l.outer) {
			t.granted()
		}
	}
}

// granted notes that t, which has queued, has all its slots, and answers that t
// or the wait it returns from may go on.
func (t *Task[T, W]) granted() {
	w := t.returning
	if w == nil {
		t.begins()
	} else {
		t.hasReturned()
	}
	t.grant(w)
}

// grant adds to the answer that w may go on, or if that is nil t.
func (t *Task[T, W]) grant(w *Wait[T, W]) {
	o := t.Limiter.outermost
	o.answer = append(o.answer, Grant[T, W]{t, w})
}

// hasReturned notes that t, which has waited, has all its slots again.
func (t *Task[T, W]) hasReturned() {
	t.returning.state, t.returning = inGrant, nil
	t.move(Running)
}

// begins notes that t, which has not begun, has all its slots.
func (t *Task[T, W]) begins() {
	if !t.ByExecutor {
		t.move(Running)
		return
	}
	t.move(Handed)
	t.Limiter.outermost.handed.push(t)
	for l := t.Limiter; l != nil; l = l.outer {
		l.reachable++
	}
}

// leaveExecutor takes t off the list of those that are Handed.
func (t *Task[T, W]) leaveExecutor() {
	t.Limiter.outermost.handed.remove(t)
	for l := t.Limiter; l != nil; l = l.outer {
		l.reachable--
	}
}

// recall takes slots from tasks that have not begun, as long as a task that returns
// from a wait queues for them, at l or at a limiter around it.
//
// A task that holds a slot of l while it queues further out to start may wait for
// long, behind others that are deeper or more urgent. It steps back: the last to
// start comes first.
//
// An executor may be waiting for the task that returns to end before it begins
// with one that it has. The latest is recalled first: it is the one that would
// begin last.
//
// So between two events: if a task is in returning, none is Handed that holds a
// slot of that limiter.
//
// The search for one is over all that are Handed under the outermost limiter.
// They are at most as many as that has slots.
func (l *Limiter[T, W]) recall() {
	for ; l != nil; l = l.outer {
		for !l.returning.empty() && len(l.between) > 0 {
			l.lastBetween().stepBack(l)
		}
		for !l.returning.empty() && l.reachable > 0 {
			t := l.outermost.handed.last
			for !t.Limiter.isInside(l) {
				t = t.prev
			}
			t.leaveExecutor()
			t.move(Recalled)
			t.giveUp(nil)
		}
	}
}

// lastBetween returns that of between which starts last.
func (l *Limiter[T, W]) lastBetween() *Task[T, W] {
	last := l.between[0]
	for _, t := range l.between[1:] {
		if !t.key().before(last.key()) {
			last = t
		}
	}
	return last
}

// stepBack has t, which queues to start further out than l and holds a slot of l,
// queue at l again, before its equals. It keeps what it holds inside l.
func (t *Task[T, W]) stepBack(l *Limiter[T, W]) {
	from := t.leaveQueue()
	t.queueAt(l)
	l.starting.toFront(t)
	t.giveUpFrom(l, from)
}
