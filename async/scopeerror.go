package async

import "github.com/ambit-go/ambit/async/internal/tally"

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
	// only told to stop, and that kept something from being done; but if the body
	// or handler said more than that as it stopped, its words come first.
	Errors []error

	// Dropped is how many more failures there were.
	Dropped int

	stop  error // the Err of the scope's context, if there is a Cause
	words bool  // the first of Errors is no failure: it is what the body said as it stopped
}

// failures returns the Errors that are failures.
func (e *ScopeError) failures() []error {
	if e.words {
		return e.Errors[1:]
	}
	return e.Errors
}

// Error tells the cause and the errors, one a line when there are several.
func (e *ScopeError) Error() string {
	if e == nil {
		return nilText(e)
	}
	var texts []string
	if e.Cause != nil {
		texts = append(texts, briefly(e.Scope, e.Cause))
	}
	for _, err := range e.Errors {
		texts = append(texts, within(e.Scope, err))
	}
	return prefix(e.Scope) + list(texts, e.Dropped)
}

// Unwrap returns the cause, if there is one, and then the listed errors.
func (e *ScopeError) Unwrap() []error {
	switch {
	case e == nil:
		return nil
	case e.Cause == nil:
		return e.Errors
	default:
		return append([]error{e.Cause}, e.Errors...)
	}
}

// Is matches the Err of the scope's context, [context.Canceled] or
// [context.DeadlineExceeded], if there is a Cause.
func (e *ScopeError) Is(target error) bool {
	return e != nil && e.Cause != nil && e.stop != nil && tally.Same(target, e.stop)
}
