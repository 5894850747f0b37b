package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is why something was stopped.

// A stopError is why a context is done: what its Err and its Cause return. It is
// also the error of a wait or task that was stopped, where the two differ.
type stopError struct {
	err, cause error
	own        bool // for an exit hook: the scope has brought that on itself; see EndingOf
}

func (sg *stopError) Error() string { return sg.cause.Error() }

func (sg *stopError) Unwrap() []error { return []error{sg.cause, sg.err} }

// because returns the cause; nil for a nil sg, of what was not told to stop.
func (sg *stopError) because() error {
	if sg == nil {
		return nil
	}
	return sg.cause
}

// asError returns the error of what was told to stop. It matches err and cause.
// It asks no Is of a user: that may use the scope, which would ask it again.
func (sg *stopError) asError() error {
	_, timeout := sg.cause.(*TimeoutError)
	if tally.Same(sg.err, sg.cause) || timeout && sg.err == context.DeadlineExceeded {
		return sg.cause
	}
	return sg
}

// canceled returns the stopError of an abort with the given cause.
func canceled(cause error) *stopError { return &stopError{err: context.Canceled, cause: cause} }

// doneError returns the error of a wait that ended because its context is done: it
// matches both err and cause.
func doneError(err, cause error) error { return (&stopError{err: err, cause: cause}).asError() }
