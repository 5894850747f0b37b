package tally

// This file is what a tally is told, and what it answers.

// A Class says what kind of end a fact is about.
type Class uint8

const (
	// Failure: an error that says something of its own.
	Failure Class = iota
	// Echo: an error that only repeats the cancellation of the scope, or of one around
	// it (Verdict.Echo of package tree is about the stop of the task itself); or,
	// without an error, something that was not done because of that.
	// It is not listed, but the scope has not gone well.
	Echo
	// Panic: Err is what is to be raised.
	Panic
	// Goexit: the task called runtime.Goexit; Err says so.
	Goexit
	// Hook: an error of a hook, an observer or a discard. It cancels nothing, and
	// never takes the place of another.
	Hook
)

// A Fact is one thing that went wrong.
type Fact struct {
	Class  Class
	Quiet  bool  // it is of a daemon, and its scope has told that to stop
	GoesOn bool  // the scope is not cancelled for it
	Err    error // not nil, but for an Echo

	// As is what is listed in place of Err if it is not nil: Bare of both is the same.
	As error

	// Errs is listed in place of Err if it is not nil: what a task that was
	// stopped for the same cause as its scope has to say of its own. A panic is
	// raised, and they are listed beside it.
	Errs []error

	// Dropped is how many errors Errs has left out already.
	Dropped int

	// Texts are what was said beside a cancellation: by an Echo, or by what Errs are
	// of. TextsDropped is how many more there were.
	Texts        []error
	TextsDropped int

	// CutOff: the end of the scope has cut off work, which the Texts name. The scope has
	// not ended well.
	CutOff bool
}

// mustRaise reports that f is a panic or Goexit. Such a fact is never told as
// something else: a waiter is given it, or the scope is.
func (f *Fact) mustRaise() bool { return f.Class == Panic || f.Class == Goexit }

// A Decision says what is to be done about a fact.
type Decision uint8

const (
	// Ignored: no error is recorded and nothing is to be done. Texts are kept.
	Ignored Decision = iota
	// Recorded: the scope tells of it at its end; nothing is to be done now.
	Recorded
	// Fails: it is recorded, and the scope is to be cancelled with it: with Err, or with
	// the first of Errs.
	Fails
	// Given: somebody else is told, and nobody besides.
	Given
	// Open: nobody was told yet. It is the scope's if it is not claimed by the
	// scope's end.
	Open
	// AtRoot: nobody was told yet, and the scope is a root, which has no end. The
	// future keeps it until it is collected.
	AtRoot
	// Late: the scope has summed up and lists nothing any more. The root is to
	// be told.
	Late
)

// A Future is what is known of a future as it settles, with a failure or with a
// value that is to be discarded if nobody is given it.
type Future struct {
	Awaited bool // somebody is waiting, and will be given the outcome
	Told    bool // its holder was told an expiry, or has cancelled it
	Rooted  bool // it belongs to a root, which sums nothing up: the future itself keeps account

	// Abandoned: it is a promise that was neither resolved nor rejected. It is a failure
	// only if somebody counted on it.
	Abandoned bool

	Late bool // the scope has summed up: it tells of nothing more
}

// A HandlerEnd is how the handler of a scope has ended, if its failure was not recorded. The zero
// value: well, or its failure was recorded.
type HandlerEnd struct {
	Echo bool // it only repeated that the scope was cancelled

	// Owes: somebody is to be given a value of it. With an echo there is none, and
	// no leader makes up for that.
	Owes bool

	// Said is the error of an Echo that says more than why the scope was cancelled
	// ("while reading page 7: context canceled"); nil: it does not.
	Said error
}
