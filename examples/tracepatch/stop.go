//go:build unix

package main

import (
	"context"
	"os"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A stop is the two levels at which a job can be told to end. What runs under
// soft is stopped by both, what runs under hard only by the second. Whoever
// tells it may do so at any time, and as often as they like: the first cause of
// each level counts.
//
// Two contexts, one in the other, and nothing is swapped while the job goes from
// script to after-script: at no moment does a cancel hit the wrong one.
type stop struct {
	soft, hard context.Context
	cancel     context.CancelCauseFunc // the script is to end
	abort      context.CancelCauseFunc // everything is to end
	report     func(format string, args ...any)
}

func newStop(ctx context.Context, report func(format string, args ...any)) *stop {
	s := &stop{report: report}
	s.hard, s.abort = context.WithCancelCause(ctx)
	s.soft, s.cancel = context.WithCancelCause(s.hard)
	return s
}

// signal is told of signals: the first one cancels, the second one aborts, and
// ends the watch, so that a third one ends the process as usual.
func (s *stop) signal(sig os.Signal) error {
	cause := &cli.SignalError{Signal: sig}
	if s.soft.Err() != nil {
		s.abort(cause)
		s.report("%v: the job is aborted", cause)
		return cause
	}
	s.cancel(cause)
	s.report("%v: the script is told to end, and the after-script is run; once more, and it is not", cause)
	return nil
}

// heed does what the server says about the job.
func (s *stop) heed(status string) {
	switch status {
	case "canceling":
		s.cancel(&stoppedError{"the server has canceled the job", statusCanceled})
	case "canceled":
		s.abort(&stoppedError{"the server has aborted the job", statusAborted})
	}
}

// A stoppedError is the cause of a job that the server has stopped.
type stoppedError struct {
	text   string
	status int
}

func (e *stoppedError) Error() string { return e.text }

// ExitStatus returns the exit status of the program.
func (e *stoppedError) ExitStatus() int { return e.status }
