package scheduler

// A seat is a worker as those see it who bring goroutines to workers.
type seat struct {
	drainer
	turn    turn // in the line for a goroutine
	unasked turn // in the line for a submission
}

// init has s stand for a worker.
func (s *seat) init(d drainer) {
	s.drainer = d
	s.turn.seat, s.unasked.seat = s, s
}

// A drainer has something to do on goroutines of the pool.
type drainer interface {
	// onPool does it, or a share of it: then it reports more. Among the tasks that ran, ticks were
	// runs of periodic ones.
	onPool() (more bool, ticks int)
	// refused is told that the pool would not have it.
	refused(err error)
}

// A line is workers, one behind the other. It links what the workers hold
// already, so that standing in it costs no memory, and leaving it no search. It
// is guarded by the dispatcher's mu.
type line struct {
	first, last *turn
	length      int
}

// A turn is the place of one worker in one line.
type turn struct {
	seat       *seat
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
