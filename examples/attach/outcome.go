//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// An ExitError is the end of a job that did not exit with 0. Like the shell, the
// daemon gives 128 and the number of a signal as the status.
type ExitError struct{ Status int }

func (e *ExitError) Error() string { return fmt.Sprintf("the script exited with status %d", e.Status) }

// ExitStatus returns Status.
func (e *ExitError) ExitStatus() int { return e.Status }

func exited(status int) error {
	if status == 0 {
		return nil
	}
	return &ExitError{status}
}

// An AbandonedError says that the daemon did not do what it was asked for, so
// that nobody knows how the job ends.
type AbandonedError struct{ Err error }

func (e *AbandonedError) Error() string {
	return "abandoned: " + e.Err.Error() + "; the script may still run there"
}

// Unwrap returns Err.
func (e *AbandonedError) Unwrap() error { return e.Err }

// A NoAnswerError is a request that the daemon has not answered in time.
type NoAnswerError struct {
	Request string
	Limit   time.Duration
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("%s: no answer from the daemon within %v", e.Request, e.Limit)
}

// errNotBegun is the end of a job that was stopped before it has started.
var errNotBegun = errors.New("nothing was run")

// A NotBegunError is why a job was not started.
type NotBegunError struct{ Err error }

func (e *NotBegunError) Error() string { return e.Err.Error() + "; nothing was run" }

// Unwrap returns Err.
func (e *NotBegunError) Unwrap() error { return e.Err }

// notBegun tells why a job was not started.
func notBegun(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return remote.Stopped(ctx, errNotBegun)
	}
	return &NotBegunError{err}
}

// A RemoveError says that a container is left.
type RemoveError struct{ Err error }

func (e *RemoveError) Error() string { return "the container is not removed: " + e.Err.Error() }

// Unwrap returns Err.
func (e *RemoveError) Unwrap() error { return e.Err }

// brief returns the parts of err that say everything.
func brief(err error) error {
	what := remote.Brief(err)
	if why, ok := errors.AsType[*NotBegunError](err); ok {
		what = why
	}
	if left, ok := errors.AsType[*RemoveError](err); ok && !errors.Is(what, left) {
		return fmt.Errorf("%w\n%w", what, left)
	}
	return what
}

// statusFailed is the exit status when the program or the daemon, not the job,
// has failed. It is that of docker run.
const statusFailed = 125

// withStatus gives err the exit status of the program.
func withStatus(err error) error {
	if err == nil || errors.As(err, new(*cli.UsageError)) {
		return err
	}
	unknown := errors.As(err, new(*AbandonedError))
	return &cli.ExitError{Code: remote.Status(err, unknown, statusFailed), Err: brief(err)}
}
