package async

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// A ScopeError says how a scope or task has ended when that is more than one
// error, or when it was cancelled by something that is no failure of its own.
// [errors.Is] and [errors.As] reach the Cause and every one of the Errors.
type ScopeError struct {
	// Scope is the name of the scope or task.
	Scope string

	// Cause is why the scope was cancelled, unless that is one of Errors: the
	// cause of the context it was opened with, its own Timeout, or what Cancel,
	// Shutdown and the like were called with. Nil if it was not cancelled. An
	// error with a Cause matches the Err of the scope's context, too.
	Cause error

	// Errors are the failures in the order in which they came, the one that
	// decided first; those of hooks come last. There are at most 32, and an error
	// that several tasks returned is listed once. There are none if the scope was
	// only told to stop, and that kept something from being done.
	Errors []error

	// Dropped is how many more failures there were.
	Dropped int

	// Stopped are what the body and the tasks returned when they were told to stop, if
	// that says more than why: "12 rows were not written: context canceled". They are
	// no failures, so errors.Is and errors.As do not reach them. There are at most 32;
	// the text shows three.
	Stopped []error

	// DroppedStopped is how many more of these there were.
	DroppedStopped int

	// paths are the names of the tasks that have returned Errors, "" where that is not
	// known; nil if none is.
	paths []string

	// said is what the handler of a task has returned that was told to stop and, as that
	// of a daemon, has not failed: who waits for the task is given it.
	said error

	stop       error // the Err of the scope's context, if there is a Cause
	fromInside bool  // for an exit hook: the Cause comes from inside the scope; see EndingOf
}

// shownStopped is how many of Stopped are in the text.
const shownStopped = 3

// Error tells the cause, the errors and some of Stopped, one a line when there are
// several.
func (e *ScopeError) Error() string {
	if e == nil {
		return nilText(e)
	}
	var texts []string
	if e.Cause != nil {
		texts = append(texts, briefly(e.Scope, e.Cause))
	}
	for i, err := range e.Errors {
		text := within(e.Scope, err)
		if i < len(e.paths) {
			text = e.withPath(e.paths[i], text)
		}
		texts = append(texts, text)
	}
	if e.Dropped > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.Dropped))
	}
	if e.said != nil {
		texts = append(texts, within(e.Scope, e.said))
	}
	for _, err := range e.Stopped[:min(len(e.Stopped), shownStopped)] {
		texts = append(texts, "stopped: "+within(e.Scope, err))
	}
	if more := max(len(e.Stopped)-shownStopped, 0) + e.DroppedStopped; more > 0 {
		texts = append(texts, fmt.Sprintf("stopped: %d more", more))
	}
	return prefix(e.Scope) + list(texts, 0)
}

// withPath returns the text of a failure of the task of that name, with what the name
// says beyond that of the scope, unless the text says it.
func (e *ScopeError) withPath(name, text string) string {
	name = strings.TrimPrefix(name, e.Scope+"/")
	if name == "" || strings.HasPrefix(text, name+": ") || strings.Contains(text, " "+name+": ") {
		return text
	}
	return name + ": " + text
}

// saysMore reports whether e says more than its Cause.
func (e *ScopeError) saysMore() bool { return e != nil && len(e.Errors)+len(e.Stopped) > 0 }

// Unwrap returns the cause, if there is one, and then the listed errors.
func (e *ScopeError) Unwrap() []error {
	switch {
	case e == nil:
		return nil
	case e.Cause == nil && e.said == nil:
		return e.Errors
	default:
		return append(notNil(e.Cause), append(e.Errors[:len(e.Errors):len(e.Errors)], notNil(e.said)...)...)
	}
}

// Is matches the Err of the scope's context, [context.Canceled] or
// [context.DeadlineExceeded], if there is a Cause.
func (e *ScopeError) Is(target error) bool {
	return e != nil && e.Cause != nil && e.stop != nil && tally.Same(target, e.stop)
}

// An Ending says how a scope has ended, or is about to; see [EndingOf].
type Ending uint8

// The endings of a scope.
const (
	Well    Ending = iota // nothing failed, and the scope was not cancelled
	Failed                // something in the scope failed, or a limit of its own has passed
	Stopped               // the scope was told to stop from outside
)

// String returns well, failed or stopped.
func (e Ending) String() string {
	return [...]string{"well", "failed", "stopped"}[e]
}

// EndingOf returns what an outcome says that an exit hook is told: whether the scope
// has ended well, has failed, or was told to stop.
//
//	if async.EndingOf(outcome) == async.Failed {
//		attempts++ // to be told to stop is no failed attempt
//	}
//
// # Details
//
// A scope that was stopped by its own [Timeout], [Heartbeat] or [Watch] has failed.
// One that its own [Leader] has ended was told to stop.
//
// EndingOf says the same of an error that [Scope] has returned, but for a scope
// without errors that was cancelled and returned nil: that has ended well.
func EndingOf(outcome error) Ending {
	return Ending(tree.HowEnded(outcome))
}
