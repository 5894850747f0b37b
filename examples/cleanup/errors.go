package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// statusLeft is the exit status if only the cleaning up has failed.
const statusLeft = 125

// A jobError says how a command has failed.
type jobError struct {
	text   string
	err    error
	cause  error // why it was stopped, if it was
	status int
}

func (e *jobError) Error() string { return e.text }

// Unwrap returns the error of package proc.
func (e *jobError) Unwrap() error { return e.err }

// ExitStatus is that of the command, or 128 and the number of the signal that has
// ended it.
func (e *jobError) ExitStatus() int { return e.status }

// An endError says how a job has ended, if it has not ended well, and what was
// left after it.
type endError struct {
	outcome error // of the job's scope, when the job and all it had started had ended
	stopped error // the cause, if the job was stopped
	err     error // that of the scope, with what the cleaning up has come to
}

// Unwrap returns the error of the scope.
func (e *endError) Unwrap() error { return e.err }

// ExitStatus is that of what has stopped the job, or else its own if it has
// failed. A deadline counts only as the cause: a job may have some of its own.
func (e *endError) ExitStatus() int {
	if status, ok := cli.StopStatus(e.stopped); ok {
		return status
	}
	return cli.Status(e.err)
}

// why says how the job has ended: what has stopped it, and what it had to say
// itself.
func (e *endError) why() string {
	if e.outcome == nil {
		return "done"
	}
	var parts []string
	var sig *cli.SignalError
	var late *async.TimeoutError
	var own *jobError
	switch {
	case errors.As(e.outcome, &sig):
		parts = append(parts, sig.Error())
	case errors.As(e.stopped, &late):
		parts = append(parts, fmt.Sprintf("stopped after %v, which is its limit", late.Limit))
	case errors.Is(e.stopped, syscall.EPIPE):
		parts = append(parts, "nobody reads the output")
	case e.stopped != nil && errors.Is(e.outcome, context.Canceled):
		parts = append(parts, "cancelled")
	}
	if errors.As(e.outcome, &own) {
		parts = append(parts, own.Error())
	}
	if len(parts) == 0 {
		return e.outcome.Error()
	}
	return strings.Join(parts, "; ")
}

func (e *endError) Error() string {
	var parts []string
	if e.outcome != nil {
		parts = append(parts, e.why())
	}
	var left *leftError
	if errors.As(e.err, &left) {
		parts = append(parts, left.Error())
	}
	if len(parts) == 0 {
		return e.err.Error()
	}
	return strings.Join(parts, "\n\t")
}

// A leftError lists what was not removed.
type leftError struct {
	of   int
	errs []error
}

func (e *leftError) Error() string {
	text := fmt.Sprintf("%d of %d not removed:", len(e.errs), e.of)
	for _, err := range e.errs {
		text += "\n\t\t" + err.Error()
	}
	return text
}

// Unwrap returns an error for each.
func (e *leftError) Unwrap() []error { return e.errs }

// ExitStatus counts if nothing else has gone wrong before.
func (e *leftError) ExitStatus() int { return statusLeft }

// A removalError says that a resource is left, and why.
type removalError struct {
	phase   phase
	removal removal
}

// Unwrap returns the error of the poll.
func (e *removalError) Unwrap() error { return e.removal.err }

func (e *removalError) Error() string {
	err := e.removal.err
	text := fmt.Sprintf("%s: %v: ", e.phase.name, e.removal.request)
	var poll *async.PollError[struct{}]
	switch last := errors.As(err, &poll); {
	case last && errors.As(err, new(*async.TimeoutError)):
		text += fmt.Sprintf("no time left of %v, attempts: %d", e.phase.budget, poll.Attempts)
		if poll.Err != nil {
			text += fmt.Sprintf("; last error: %v", poll.Err)
		}
		return text
	case last && poll.Err != nil:
		return text + poll.Err.Error()
	case errors.As(err, new(*async.TimeoutError)):
		return text + fmt.Sprintf("no time left of %v, attempts: 0", e.phase.budget)
	}
	return text + err.Error()
}
