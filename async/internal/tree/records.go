package tree

import (
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file has the records of what went wrong, which the tree works with. A codec, which package
// async has, makes of them the errors that users are given.

// Errors that tell how work ended.
var (
	ErrScopeEnded = errors.New("async: scope has ended")
	ErrDismissed  = errors.New("async: dismissed")
	ErrGoexit     = errors.New("async: task called runtime.Goexit")
	ErrAwaitCycle = errors.New("async: await cycle")
	ErrAbandoned  = errors.New("async: promise abandoned")
	ErrDecided    = errors.New("async: decided without it")
	ErrShutdown   = errors.New("async: shutting down")
)

// An ErrorCodec makes the errors that users are told, and finds the records that they were made
// of. The types of those errors are not the tree's. An error of a user that wraps one of them, or
// embeds it, is none.
type ErrorCodec interface {
	// PanicError returns what users are given for p.
	PanicError(p *Panic) error
	// PanicIn returns the record that err was made of; nil if err is nothing of ours.
	PanicIn(err error) *Panic
	// ListError returns what users are given for l.
	ListError(l *Listing) error
	// ListIn returns what err lists; nil if it is no such error.
	ListIn(err error) *Listing
	// Unawaited returns the error that task has failed with err, and nobody has awaited it;
	// err itself if that says already where it was.
	Unawaited(task string, err error) error
	// UnawaitedIn returns what Unawaited was called with; ok is false if err is no such error.
	UnawaitedIn(err error) (task string, failure error, ok bool)
	// TimeoutError returns the error of a limit that has passed. ofAwait: it is that of a wait.
	TimeoutError(task string, limit, waited time.Duration, ofAwait bool) error
	// LimitIn returns the task that err, made by TimeoutError, is about.
	LimitIn(err error) (task string, ok bool)
	// StragglerError returns the error that names what is left.
	StragglerError(l *Leftovers) error
	// Rejected returns the error of a task that its executor has refused with err.
	Rejected(task string, err error) error
	// Saying returns what err says, if it is of ours.
	Saying(err error) (says echo.Saying, ours bool)
	// Is reports whether err is of that kind.
	Is(err error, kind ErrorKind) bool
}

// Codec is set once, by the package that has the types of errors.
var Codec ErrorCodec

// An ErrorKind is a kind of errors which the tree only has to know.
type ErrorKind uint8

const (
	MissedSign ErrorKind = iota // a watchdog has stopped the task
	HasMemory                   // it holds what came before a stop, which a waiter is told
	onlyCounts                  // how often a task has failed, and nothing else
)

// A Panic is a panic that was recovered. It is never changed: what is raised, and what has
// gone wrong beside it, is said by a copy.
type Panic struct {
	Value    any    // what panic was called with
	Stack    []byte // of the goroutine that panicked
	Task     string
	Also     []error        // what else went wrong
	Dropped  int            // how many more there were
	Raised   bool           // a scope has panicked with it
	identity *panicIdentity // the same for all copies
	face     error          // what users are given for it
}

// panicIdentity is what the copies of one panic have in common.
type panicIdentity struct {
	first    error      // the face of the first of them
	observed AtomicBool // the observers were told of it
	printed  AtomicBool // it was printed, because it was not raised for long
}

// newPanic returns the record of a panic of task with value, whose stack is given.
func newPanic(task string, value any, stack []byte) *Panic {
	p := &Panic{Value: value, Stack: stack, Task: task, identity: new(panicIdentity)}
	p.face = Codec.PanicError(p)
	p.identity.first = p.face
	return p
}

// AsError returns what users are given for p; nil for a nil p.
func (p *Panic) AsError() error {
	if p == nil {
		return nil
	}
	return p.face
}

// changed returns a copy of p to which change was made.
func (p *Panic) changed(change func(c *Panic)) *Panic {
	c := *p
	change(&c)
	c.face = Codec.PanicError(&c)
	return &c
}

// Raise returns what a scope panics with for p.
func (p *Panic) Raise() error {
	if !p.Raised {
		p = p.changed(func(c *Panic) { c.Raised = true })
	}
	return p.face
}

// returned returns what a future gives to a waiter for p.
func (p *Panic) returned() *Panic {
	if !p.Raised {
		return p
	}
	return p.changed(func(c *Panic) { c.Raised = false })
}

// SameAs reports whether err stands for the same panic: as its cause, or as what a scope has raised.
func (p *Panic) SameAs(err error) bool {
	other := Codec.PanicIn(err)
	return other != nil && other.identity == p.identity
}

// withoutCount returns p without the error that says how often a task has failed: nothing more
// has gone wrong.
func (p *Panic) withoutCount() *Panic {
	return p.changed(func(c *Panic) {
		c.Also = slices.DeleteFunc(slices.Clone(p.Also), func(err error) bool { return Codec.Is(err, onlyCounts) })
	})
}

// A Listing is what a scope or task tells of its end, if that is more than one error.
type Listing struct {
	Scope          string
	Cause          error // why it was cancelled, unless that is one of errs
	Errs           []error
	Dropped        int // how many more there were
	Stopped        []error
	DroppedStopped int
	Paths          []string // of the tasks that have returned errs, "" where that is not known; nil if none is
	Said           error    // what the handler of a task has returned that was told to stop
	Stop           error    // the Err of the scope's context, if there is a cause
	FromInside     bool     // for an exit hook: the cause comes from inside the scope
}

// asError returns what users are given for l.
func (l *Listing) asError() error { return Codec.ListError(l) }

// IsOne reports whether l lists one error, and nothing else.
func (l *Listing) IsOne() bool {
	return len(l.Errs) == 1 && l.Dropped == 0 && len(l.Stopped)+l.DroppedStopped == 0
}

// A Straggler is a task that still runs.
type Straggler struct {
	Task  string
	State TaskState
	Stack string
}

// Leftovers are the tasks that are left of a scope.
type Leftovers struct {
	Scope string
	Left  []Straggler
	More  int
	Cause error // why they were told to stop
}

// asError returns what users are given for l.
func (l *Leftovers) asError() error { return Codec.StragglerError(l) }

// A TaskState is where a task stands, as users see it.
type TaskState uint8

const (
	isQueued TaskState = iota
	isRunning
	isAborting
	isDone
)
