package async

import (
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file is how the tree speaks of errors: it has records of what went wrong, and the errors
// that users are given for them are made elsewhere.

// Errors that tell how work ended.
var (
	errScopeEnded = errors.New("async: scope has ended")
	errDismissed  = errors.New("async: dismissed")
	errGoexit     = errors.New("async: task called runtime.Goexit")
	errAwaitCycle = errors.New("async: await cycle")
	errAbandoned  = errors.New("async: promise abandoned")
	errShutdown   = errors.New("async: shutting down")
)

// An errorWords makes the errors that users are told, and knows them again. The types of those
// are not the tree's. An error of a user that wraps one of them, or embeds it, is none.
type errorWords interface {
	// PanicError returns what users are given for p.
	PanicError(p *panicRecord) error
	// PanicIn returns the record that err was made of; nil if err is nothing of ours.
	PanicIn(err error) *panicRecord
	// ListError returns what users are given for l.
	ListError(l *listing) error
	// ListIn returns what err lists; nil if it is no such error.
	ListIn(err error) *listing
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
	StragglerError(l *leftovers) error
	// Rejected returns the error of a task that its executor has refused with err.
	Rejected(task string, err error) error
	// Saying returns what err says, if it is of ours.
	Saying(err error) (says echo.Saying, ours bool)
	// Is reports whether err is of that kind.
	Is(err error, kind errorKind) bool
}

// words is set once, by the package that has the types of errors.
var words errorWords

// An errorKind is a kind of errors which the tree only has to know.
type errorKind uint8

const (
	missedSign errorKind = iota // a watchdog has stopped the task
	hasMemory                   // it holds what came before a stop, which a waiter is told
	onlyCounts                  // how often a task has failed, and nothing else
)

// A panicRecord is a panic that was recovered. It is never changed: what is raised, and what has
// gone wrong beside it, is said by a copy.
type panicRecord struct {
	value   any    // what panic was called with
	stack   []byte // of the goroutine that panicked
	task    string
	also    []error   // what else went wrong
	dropped int       // how many more there were
	raised  bool      // a scope has panicked with it
	of      *onePanic // the same for all copies
	face    error     // what users are given for it
}

// onePanic is what the copies of one panic have in common.
type onePanic struct {
	first    error      // the face of the first of them
	observed atomicBool // the observers were told of it
	printed  atomicBool // it was printed, because it was not raised for long
}

// newPanic returns the record of a panic of task with value, whose stack is given.
func newPanic(task string, value any, stack []byte) *panicRecord {
	p := &panicRecord{value: value, stack: stack, task: task, of: new(onePanic)}
	p.face = words.PanicError(p)
	p.of.first = p.face
	return p
}

// asError returns what users are given for p; nil for a nil p.
func (p *panicRecord) asError() error {
	if p == nil {
		return nil
	}
	return p.face
}

// changed returns a copy of p to which change was made.
func (p *panicRecord) changed(change func(c *panicRecord)) *panicRecord {
	c := *p
	change(&c)
	c.face = words.PanicError(&c)
	return &c
}

// raise returns what a scope panics with for p.
func (p *panicRecord) raise() error {
	if !p.raised {
		p = p.changed(func(c *panicRecord) { c.raised = true })
	}
	return p.face
}

// returned returns what a future gives to a waiter for p.
func (p *panicRecord) returned() *panicRecord {
	if !p.raised {
		return p
	}
	return p.changed(func(c *panicRecord) { c.raised = false })
}

// is reports whether err stands for the same panic: as its cause, or as what a scope has raised.
func (p *panicRecord) is(err error) bool {
	other := words.PanicIn(err)
	return other != nil && other.of == p.of
}

// withoutCount returns p without the error that says how often a task has failed: nothing more
// has gone wrong.
func (p *panicRecord) withoutCount() *panicRecord {
	return p.changed(func(c *panicRecord) {
		c.also = slices.DeleteFunc(slices.Clone(p.also), func(err error) bool { return words.Is(err, onlyCounts) })
	})
}

// A listing is what a scope or task tells of its end, if that is more than one error.
type listing struct {
	scope          string
	cause          error // why it was cancelled, unless that is one of errs
	errs           []error
	dropped        int // how many more there were
	stopped        []error
	droppedStopped int
	paths          []string // of the tasks that have returned errs, "" where that is not known; nil if none is
	said           error    // what the handler of a task has returned that was told to stop
	stop           error    // the Err of the scope's context, if there is a cause
	own            bool     // for an exit hook: the scope has brought the cause on itself
}

// asError returns what users are given for l.
func (l *listing) asError() error { return words.ListError(l) }

// isOne reports whether l lists one error, and nothing else.
func (l *listing) isOne() bool {
	return len(l.errs) == 1 && l.dropped == 0 && len(l.stopped)+l.droppedStopped == 0
}

// A straggler is a task that still runs.
type straggler struct {
	task  string
	state taskState
	stack string
}

// leftovers are the tasks that are left of a scope.
type leftovers struct {
	scope string
	left  []straggler
	more  int
	cause error // why they were told to stop
}

// asError returns what users are given for l.
func (l *leftovers) asError() error { return words.StragglerError(l) }

// A taskState is where a task stands, as users see it.
type taskState uint8

const (
	isQueued taskState = iota
	isRunning
	isAborting
	isDone
)
