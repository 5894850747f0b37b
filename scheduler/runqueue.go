package scheduler

// A runQueue is who waits for a goroutine of the pool, and which goroutines are there to come
// by. It is plain data: the caller of a method holds the dispatcher's lock, and does without
// the lock what the method returns. There is no goroutine in it, and no pool.
//
// A worker that waits is in the line ready. These may come by for it, and are counted:
//
//	serving   goroutines that go through the line; of these lent ones do not come by
//	promised  submissions that the pool has accepted and not begun, or is asked for
//	wanted    submissions that the feeder is still to make
//
// While the line is not empty one of the three is above 0. A goroutine that leaves because the
// line is empty, and a submission that is refused, may meet a worker that comes. One of the two
// is first: the worker comes before, and is seen, or after, and has a submission made. A
// worker that was refused waits for those that are counted. So whoever counts one of them
// out looks at the line in the same step. No worker is forgotten.
type runQueue struct {
	inline bool // the pool is Inline
	asks   bool // the pool has TryExecute
	over   bool // there are no workers and never will be

	ready   line // the workers that wait for a goroutine, in order
	unasked line // those of ready for which the feeder is still to make a submission

	wanted   int  // submissions that the feeder has to make
	feeding  bool // there is a feeder
	promised int  // submissions that the pool has accepted, or is looking at, and has not begun
	asking   int  // of these, those that the pool is looking at
	serving  int  // goroutines that go through the line
	lent     int  // of these, those whose task waits for another worker: they do not come by
	standIns int  // of these, those that stand in for one that is lent
	using    int  // goroutines that call the pool's methods, the feeder included

	submissions uint64
	refusals    uint64
}

// A work is what is to be done when something has happened, without the lock.
type work uint8

const (
	toOffer   work = 1 << iota // offer the pool a submission, by TryExecute
	toServe                    // go through the line, on this goroutine
	toFeed                     // start the feeder
	toStandIn                  // start a goroutine that stands in
)

// add puts w, which was idle and has something to do, in the line.
func (q *runQueue) add(w *seat) work {
	if q.over { // w was closed a moment ago
		return 0
	}
	q.ready.add(&w.turn)
	switch {
	case q.inline && q.coming() > 0:
		return 0 // the goroutine that serves comes by
	case q.inline:
		q.submissions++
		q.promised++
		return toServe
	case q.asks:
		q.ask()
		return toOffer
	default:
		q.unasked.add(&w.unasked)
		return q.feed(1)
	}
}

// ask counts a submission that the pool is asked for without blocking.
func (q *runQueue) ask() {
	q.promised++
	q.asking++
	q.using++
}

// feed has n more submissions made that may block, by the feeder: the one goroutine of ours
// that does so.
func (q *runQueue) feed(n int) work {
	q.wanted += n
	if q.feeding {
		return 0
	}
	q.feeding = true
	q.using++
	return toFeed
}

// offered counts the answer to a submission that was offered for w. If the pool has not taken
// it the feeder makes one.
func (q *runQueue) offered(w *seat, taken bool) (todo work) {
	q.answered(taken)
	switch {
	case taken:
	case w.turn.inLine:
		q.unasked.add(&w.unasked)
		todo = q.feed(1)
	case q.nobodyComes(): // another worker was refused, and waits for what was offered here
		todo = q.feed(1)
	}
	return todo | q.standIn()
}

func (q *runQueue) answered(taken bool) {
	q.asking--
	q.using--
	if taken {
		q.submissions++
	} else {
		q.withdraw()
	}
}

// withdraw counts out a submission that has begun, or was not accepted.
func (q *runQueue) withdraw() {
	q.promised = max(q.promised-1, 0) // a pool may have run what it says that it refused
}

// submit returns the worker for which the feeder is to make a submission, nil if none is to
// be made.
func (q *runQueue) submit() *seat {
	if q.ready.first == nil || q.over || q.wanted == 0 && !q.nobodyComes() {
		q.wanted = 0 // somebody was faster
		return nil
	}
	q.wanted = max(q.wanted-1, 0)
	first := q.unasked.first
	if first == nil {
		first = q.ready.first // it waits for a turn, and the one that was asked for has come
	}
	q.unasked.remove(&first.seat.unasked)
	q.submissions++
	q.promised++
	q.asking++
	return first.seat
}

// submitted counts the answer to a submission that the feeder has made for w. If that was
// refused w waits for a goroutine that comes by or is promised. If there is none alone is
// true: what w has queued is to be rejected, and nobody else's.
func (q *runQueue) submitted(w *seat, refused bool) (alone bool, todo work) {
	q.asking--
	if !refused {
		return false, 0
	}
	q.refusals++
	q.withdraw()
	todo = q.standIn()
	if alone = w.turn.inLine && q.promised+q.coming() == 0; alone {
		q.remove(w)
	}
	return alone, todo
}

// fed counts the feeder out.
func (q *runQueue) fed() (todo work) {
	q.feeding = false
	if q.wanted > 0 {
		todo = q.feed(0)
	}
	q.using--
	return todo
}

// nobodyComes reports that a worker waits in the line, and no goroutine is there for it to
// wait for, nor promised: it was refused while one was, which has left since.
func (q *runQueue) nobodyComes() bool { return q.ready.first != nil && q.promised+q.coming() == 0 }

// coming returns how many of the goroutines that serve come by the line when their task has
// returned. One whose task waits for a worker does not: that may be the worker which stands
// in the line.
func (q *runQueue) coming() int { return max(q.serving-q.lent, 0) }

// begin counts a goroutine that the pool has promised as serving, and returns the worker that
// it is to drain first; nil: it is to leave.
func (q *runQueue) begin() *seat {
	q.withdraw()
	// An inline pool runs us below a task of ours on the stack: the goroutine goes on with the
	// line when the task has returned.
	if q.inline && q.coming() > 0 {
		return nil
	}
	q.serving++
	return q.next()
}

// next takes the worker that has waited longest. If there is none, the goroutine that asks
// has nothing to do and is counted out.
func (q *runQueue) next() *seat {
	if q.ready.first == nil {
		q.serving--
		return nil
	}
	w := q.ready.first.seat
	q.remove(w)
	return w
}

// remove takes w off the workers that wait. Whether it was in one of the lines or in both
// makes no difference.
func (q *runQueue) remove(w *seat) {
	q.ready.remove(&w.turn)
	q.unasked.remove(&w.unasked)
}

// handBack puts w, which has had its share, at the end of the line. It reports whether the
// goroutine is to be offered to the pool; handedBack counts the answer.
func (q *runQueue) handBack(w *seat) (ask bool) {
	q.ready.add(&w.turn)
	if ask = q.asks && !q.over; ask {
		q.ask()
	}
	return ask
}

// handedBack returns the worker that the goroutine goes on with, nil if it is to leave.
func (q *runQueue) handedBack(taken bool) *seat {
	if q.answered(taken); !taken {
		return q.next()
	}
	// A turn that the pool has taken may have run and left before the pool said so. A worker that was
	// refused since waits for this goroutine, which counts as serving: then it stays.
	q.serving--
	if q.nobodyComes() {
		q.serving++
		return q.next()
	}
	return nil
}

// died counts out a goroutine that leaves though there may be more to do. The rest is for
// another one, which the feeder asks for: the pool may be full, and this goroutine is still
// one of it.
func (q *runQueue) died() work {
	q.serving--
	if q.ready.first == nil {
		return 0
	}
	return q.feed(1)
}

// A task that waits for another worker of the dispatcher lends its place in the pool: its
// goroutine stands still until that worker has come to something, so another one may go on in
// its place. If the pool, when it was asked, had no room for more, that is a goroutine of ours,
// and the only case in which tasks run on one. So what a task calls does not depend on how
// large the pool is. A pool that cannot be asked may have room, and is not helped.

// lend is called when the task of a goroutine that serves begins to wait for a worker, takeBack
// when that wait has ended.
func (q *runQueue) lend() work {
	q.lent++
	return q.standIn()
}

func (q *runQueue) takeBack() { q.lent-- }

// isBack reports that more goroutines stand in than are lent: the one that asks is to leave.
func (q *runQueue) isBack() bool { return q.standIns > q.lent }

// standIn has a goroutine stand in for one that is lent, if there is a worker in the line and
// nobody comes by. If the pool cannot be asked, another submission is made, which it may refuse.
func (q *runQueue) standIn() work {
	switch {
	case q.lent == 0 || q.ready.first == nil || q.over:
	case q.coming() > 0 || q.promised > q.asking: // somebody comes by
	case (q.asks || q.inline) && q.standIns < q.lent:
		q.standIns++
		q.serving++
		return toStandIn
	case q.promised == 0 && q.wanted == 0:
		return q.feed(1)
	}
	return 0
}

// stoodIn counts out a goroutine that has stood in, when it serves no more.
func (q *runQueue) stoodIn() work {
	q.standIns--
	return q.standIn()
}
