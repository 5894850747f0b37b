package scheduler

// A line is workers, one behind the other. It links what the workers hold
// already, so that standing in it costs no memory, and leaving it no search. It
// is guarded by the scheduler's mu.
type line struct {
	first, last *turn
	length      int
}

// A turn is the place of one worker in one line.
type turn struct {
	w          *ExecutorWorker
	prev, next *turn
	inLine     bool
}

// add puts t at the end, unless it is in the line already.
func (l *line) add(t *turn) {
	if t.inLine {
		return
	}
	t.inLine, t.prev = true, l.last
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
	l.length++
}

// remove takes t out of the line, if it is in it.
func (l *line) remove(t *turn) {
	if !t.inLine {
		return
	}
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next, t.inLine = nil, nil, false
	l.length--
}
