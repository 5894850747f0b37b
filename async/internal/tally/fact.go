package tally

// This file is what a tally is told, and what it answers.

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

// mustRaise reports that f is a panic or Goexit. Such a fact is never told as
// something else: a waiter is given it, or the scope is.
func (f *Fact) mustRaise() bool { return f.Class == Panic || f.Class == Goexit }

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

// A Body is how the handler or body of a scope has ended. Its failure was
// recorded by Fail.
type Body struct {
	Echo bool // it only repeated that the scope was cancelled

	// Missed: somebody is to be given a value of it. With an echo there is none, and
	// that is never excused.
	Missed bool
}

// A Stop says why a scope was cancelled; the zero value, that it was not.
type Stop struct {
	Cause error
}

// A Sum is how a scope has gone.
type Sum struct {
	// Cause is why the scope was cancelled, if that is to be told: something was
	// kept from being done or failed, and it is none of Errs.
	Cause error
	// Errs are the failures in the order in which they came, the one that
	// decided first, and errors of hooks behind them. A panic that is to be
	// raised is none of them.
	Errs    []error
	Dropped int   // how many more there were
	Panic   error // is to be raised; nil for none
	Goexit  bool  // something called runtime.Goexit
}

// Well reports that nothing is to be told.
func (s *Sum) Well() bool {
	return s.Cause == nil && s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0
}

// Echo reports that there is nothing to tell but that the scope was cancelled.
func (s *Sum) Echo() bool {
	return s.Cause != nil && s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0 && !s.Goexit
}
