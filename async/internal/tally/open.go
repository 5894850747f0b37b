package tally

import "slices"

// This file keeps what nobody was given yet: failures of futures, which are the
// scope's if nobody claims them, and values that are to be discarded then.

// An Entry stands for one failure or value while it is open. The zero value is
// not on a list.
type Entry struct {
	Outcome any // of which future x is the entry: the user of the tally knows its type

	prev, next *Entry // on the list of the tally
	fact       *Fact  // nil for a value
	state      entryState
}

// Closed reports whether x was open and is not any more: it was claimed, or the scope
// has taken it at its end.
func (x *Entry) Closed() bool { return x.state == closed }

// entryState is where an Entry stands. It moves from unlisted to one of the
// others and from there to closed.
type entryState uint8

const (
	// unlisted: it was never handed to Future or Value.
	_ entryState = iota
	// listed: it is on the list.
	listed
	// countedOnly: there was no place on the list; the number is kept.
	countedOnly
	// closed: it was claimed, or taken at the end of the scope.
	closed
)

// list is a doubly linked list: claiming takes the same time however many are
// open.
type list struct{ first, last *Entry }

func (l *list) push(x *Entry) {
	x.prev = l.last
	if l.last != nil {
		l.last.next = x
	} else {
		l.first = x
	}
	l.last = x
}

func (l *list) remove(x *Entry) {
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		l.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		l.last = x.prev
	}
	x.prev, x.next = nil, nil
}

// Value decides about a value with a discard hook, as its future settles. If the
// decision is Open, x stands for it from now on; see Claim. If it is Late, the value
// is to be discarded now.
func (t *Tally) Value(future Future, x *Entry) Decision { return t.offer(nil, future, x) }

// offer decides what becomes of an outcome that is told or given to the one who
// asks first: an error, or a value if f is nil.
func (t *Tally) offer(f *Fact, future Future, x *Entry) Decision {
	switch {
	case future.Awaited:
		return Given
	case future.Rooted:
		return AtRoot
	case future.Late:
		return Late
	}
	t.keep(x, f)
	return Open
}

// keep lists what is open. A value always finds a place, and so does a panic, because
// it must be raised; other errors only while there are fewer than Max of them.
func (t *Tally) keep(x *Entry, f *Fact) {
	if f != nil && f.Class != Panic {
		if t.failing >= Max {
			x.state = countedOnly
			t.counted++
			return
		}
		t.failing++
	}
	x.state, x.fact = listed, f
	t.open.push(x)
}

// Claim closes x, because somebody is given what it stands for. It reports
// false if that was decided before.
func (t *Tally) Claim(x *Entry) bool {
	switch x.state {
	case listed:
		t.unlist(x)
	case countedOnly:
		t.counted--
		x.state = closed
	default:
		return false
	}
	return true
}

func (t *Tally) unlist(x *Entry) {
	t.open.remove(x)
	if x.fact != nil && x.fact.Class != Panic {
		t.failing--
	}
	x.state, x.fact = closed, nil
}

// A Teller returns as what the scope is to tell of err, a failure that nobody has
// claimed. It stands for err: Bare of both is the same.
type Teller func(x *Entry, err error) error

// by returns tell for what x stands for.
func (tell Teller) by(x *Entry) func(error) error {
	if tell == nil {
		return nil
	}
	return func(err error) error { return tell(x, err) }
}

// TakeFailures makes the scope's what nobody has claimed by its end, as tell says;
// nil: as it is. Values stay open.
func (t *Tally) TakeFailures(tell Teller) {
	if t == nil {
		return
	}
	for x := t.open.first; x != nil; {
		next := x.next
		if f := x.fact; f != nil {
			t.unlist(x)
			t.fail(f, tell.by(x))
		}
		x = next
	}
	t.dropped += t.counted
	t.counted = 0
}

// Lost returns a tally of the failures so far, with those that nobody was given, as
// tell says. It refers to no Entry, and changes nothing.
func (t *Tally) Lost(tell Teller) *Tally {
	lost := &Tally{
		Bare: t.Bare,
		errs: slices.Clone(t.errs), hooks: slices.Clone(t.hooks),
		panicky: t.panicky, goexit: t.goexit, dropped: t.dropped + t.counted,
		texts: slices.Clone(t.texts), textsDropped: t.textsDropped, cutOff: t.cutOff,
	}
	for x := t.open.first; x != nil; x = x.next {
		if x.fact != nil {
			lost.fail(x.fact, tell.by(x))
		}
	}
	return lost
}

// TakeValue closes the value that has been open for longest and returns its
// entry, nil if there is none. It is to be discarded.
func (t *Tally) TakeValue() *Entry {
	if t == nil {
		return nil
	}
	for x := t.open.first; x != nil; x = x.next {
		if x.fact == nil {
			t.unlist(x)
			return x
		}
	}
	return nil
}

// Forget drops what has gone wrong so far, because it has been told; and with it was
// told why the scope was cancelled, which is not told again. An entry that is open stays, and
// so does what the scope was cancelled for.
func (t *Tally) Forget() {
	*t = Tally{
		Bare: t.Bare, told: true, decided: t.decided,
		open: t.open, failing: t.failing, counted: t.counted,
	}
}
