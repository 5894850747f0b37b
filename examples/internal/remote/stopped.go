//go:build unix

// Package remote is what the programs that run a script somewhere else share:
// an outcome that tells both why a script was stopped and how it ended, and the
// wait for the last of its output.
package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// A StoppedError is the outcome of a script that was told to stop: why, and how
// it ended then. Either may be what somebody looks for.
type StoppedError struct {
	Cause error
	End   error // nil if the script exited with 0
}

// Error says both.
func (e *StoppedError) Error() string {
	if e.End == nil {
		return say(e.Cause) + "; the script exited with status 0"
	}
	return say(e.Cause) + "; " + e.End.Error()
}

// Unwrap returns both.
func (e *StoppedError) Unwrap() []error {
	if e.End == nil {
		return []error{e.Cause}
	}
	return []error{e.Cause, e.End}
}

// say puts the causes of package async into the words of the programs.
func say(cause error) string {
	switch cause := cause.(type) {
	case *async.TimeoutError:
		return fmt.Sprintf("stopped after %v, the limit of -timeout", cause.Limit)
	case *async.WatchdogError:
		return cause.Err.Error()
	}
	return cause.Error()
}

// Stopped adds the cause of ctx, if it has one, to the end of a script.
func Stopped(ctx context.Context, end error) error {
	if cause := context.Cause(ctx); cause != nil {
		return &StoppedError{cause, end}
	}
	return end
}

// Brief returns the part of err that says everything. The scopes on its way have
// each added the cause that they were cancelled with.
func Brief(err error) error {
	told, ok := errors.AsType[*StoppedError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, ErrStuck):
		return errors.Join(told, ErrStuck)
	}
	return told
}
