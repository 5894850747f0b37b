// Package tally decides what is told to whom when work in a scope goes wrong.
//
// It is a pure core: facts in, decisions out. It takes no lock, starts no
// goroutine, reads no clock, and calls no method of an error. Its user holds
// the scope's lock around every call and acts on the answers after unlocking.
// A success never reaches it, so a scope in which all goes well has none.
//
// A fact is classified before it comes here: whether an error is an echo, that
// is, says no more than that its task was told to stop, takes calls of users'
// methods, which nobody may make under a lock.
//
// The shape, events in and actions out, is that of etcd's raft.
package tally

// Max is how many errors a scope lists. Of the rest it keeps the number.
const Max = 32

// A Class says what kind of end a fact is about.
type Class uint8

const (
	// Failure: an error that says something of its own.
	Failure Class = iota
	// Echo: an error that only repeats the cancellation of the scope, or of one
	// around it. It is not listed, but the scope has not gone well.
	Echo
	// Panic: Err is what is to be raised.
	Panic
	// Goexit: the task called runtime.Goexit; Err says so.
	Goexit
)

// A Fact is one thing that went wrong.
type Fact struct {
	Class Class
	Err   error // not nil

	// Errs is listed in place of Err if it is not nil: what a task that was
	// stopped for the same cause as its scope has to say of its own. A panic is
	// raised, and they are listed beside it.
	Errs []error

	// Dropped is how many errors Errs has left out already.
	Dropped int
}

// loud reports that a fact is never told as something else: somebody has to be
// given it, or the scope is.
func (f *Fact) loud() bool { return f.Class == Panic || f.Class == Goexit }

// A Decision says what is to be done about a fact.
type Decision uint8

const (
	// Ignored: nothing is recorded and nothing is to be done.
	Ignored Decision = iota
	// Recorded: the scope tells of it at its end; nothing is to be done now.
	Recorded
	// Fails: it is recorded, and the scope is to be cancelled with Err.
	Fails
	// Given: somebody else is told, and nobody besides.
	Given
	// Open: nobody was told yet. It is the scope's if it is not claimed by the
	// scope's end.
	Open
	// Late: the scope has summed up and lists nothing any more. The root is to
	// be told.
	Late
)

// A Tally is what has gone wrong in one scope. The zero value says that nothing
// has. A nil Tally may be asked for its Sum.
type Tally struct {
	errs    []error // failures in the order in which they came; at most Max, each once
	hooks   []error // of hooks, observers and discards; at most Max
	panicky error   // the first panic; it is the one that is raised
	dropped int     // how many failures and errors of hooks were not listed
	goexit  bool    // something called runtime.Goexit
	echoed  bool    // something only repeated that the scope was cancelled
	skipped bool    // something was not done because the scope was cancelled

	open    list // failures of futures and values that nobody was given yet
	failing int  // errors in open, panics and values not counted; at most Max
	counted int  // open errors that found no place in the list and are only counted
}

// Child decides about the end of a Go task, of an item, or of whatever else has
// nobody but the scope to tell. stopped says that it is a daemon and that its
// scope has told it to stop: what it returns then is not a failure.
func (t *Tally) Child(f *Fact, stopped bool) Decision {
	switch {
	case stopped && !f.loud():
		return Ignored
	case f.Class == Echo:
		t.echoed = true
		return Recorded
	default:
		t.Fail(f)
		return Fails
	}
}

// A Future is what is known of a future that has failed, as it settles.
type Future struct {
	Awaited bool // somebody is waiting, and will be given the error
	Told    bool // its owner was told an expiry, or has cancelled it
	Stopped bool // it is a daemon, and its scope has told it to stop
	Rooted  bool // it belongs to a root, which sums nothing up: the future itself keeps account

	// Abandoned: it is a promise that was neither resolved nor rejected. That is
	// a failure only if somebody counted on it.
	Abandoned bool

	Late bool // the scope has summed up: it tells of nothing more
}

// Future decides about the failure of a future. If the decision is Open, x
// stands for it from now on; see Claim.
func (t *Tally) Future(f *Fact, of Future, x *Entry) Decision {
	switch {
	case of.Abandoned:
		if of.Awaited {
			t.Fail(f)
		}
		return Given
	case f.Class == Echo:
		t.echoed = t.echoed || !of.Stopped
		return Given
	case of.Awaited, (of.Told || of.Stopped) && !f.loud():
		return Given
	case of.Rooted:
		return Open
	case of.Late:
		return Late
	}
	t.keep(x, f)
	return Open
}

// Fail records a failure, a panic or Goexit.
func (t *Tally) Fail(f *Fact) {
	if f.Class == Goexit {
		t.goexit = true
	}
	if f.Class == Panic {
		t.addPanic(f.Err)
	} else if f.Errs == nil {
		t.add(f.Err)
	}
	for _, err := range f.Errs {
		if !Same(err, t.panicky) {
			t.add(err)
		}
	}
	t.dropped += f.Dropped
}

// addPanic records a panic. The first is the one that is raised.
func (t *Tally) addPanic(p error) {
	switch {
	case t.panicky == nil:
		t.panicky = p
		t.errs = remove(t.errs, p) // it may have been given to somebody who returned it
	case !Same(t.panicky, p):
		t.add(p)
	}
}

// add lists an error once, however many repeat it.
func (t *Tally) add(err error) {
	switch {
	case contains(t.errs, err):
	case len(t.errs) < Max:
		t.errs = append(t.errs, err)
	default:
		t.dropped++
	}
}

// Hook records an error of a hook, which never takes the place of another.
func (t *Tally) Hook(err error) {
	switch {
	case contains(t.hooks, err):
	case len(t.hooks) < Max:
		t.hooks = append(t.hooks, err)
	default:
		t.dropped++
	}
}

// Echo records that something only repeated the cancellation of the scope.
func (t *Tally) Echo() { t.echoed = true }

// Skip records that something was not done because the scope was cancelled.
func (t *Tally) Skip() { t.skipped = true }

// Has reports whether err is one of the failures so far.
func (t *Tally) Has(err error) bool {
	return t != nil && (t.panicky != nil && Same(t.panicky, err) || contains(t.errs, err))
}

// FirstPanic returns the panic that is to be raised, nil if there is none.
func (t *Tally) FirstPanic() error {
	if t == nil {
		return nil
	}
	return t.panicky
}
