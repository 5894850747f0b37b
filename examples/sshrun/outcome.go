package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// An ExitError is what a server has said about the end of a script that did not
// exit with 0: its status, or the name of the signal that has ended it, without
// SIG.
type ExitError struct {
	Status int
	Signal string
	Core   bool // the signal has left a core dump
}

func (e *ExitError) Error() string {
	switch {
	case e.Signal == "":
		return fmt.Sprintf("the script exited with status %d", e.Status)
	case e.Core:
		return fmt.Sprintf("signal %s ended the script (core dumped)", e.Signal)
	default:
		return fmt.Sprintf("signal %s ended the script", e.Signal)
	}
}

// ExitStatus returns the status, or 128 and the number of the signal, as a
// shell would.
func (e *ExitError) ExitStatus() int {
	if e.Signal == "" {
		return e.Status
	}
	return 128 + signalNumbers[e.Signal]
}

// signalNumbers are those of the signals that RFC 4254 names, on the machines
// that most servers are. The protocol has no numbers: a signal that is not
// here counts as 0.
var signalNumbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// An AbandonedError says that the program has given up on a server that did not
// do what it was asked for, and has closed the connection.
type AbandonedError struct {
	During string // what the server was last asked for
	MayRun bool   // the script was sent: nobody knows what became of it
}

func (e *AbandonedError) Error() string {
	if e.MayRun {
		return "abandoned: " + e.During + "; the script may still run there"
	}
	return "abandoned: " + e.During + "; nothing was run"
}

// errLost is the end of a script whose end the server has not told.
var errLost = errors.New("the connection ended before the script did; it may still run there")

// A stoppedError is the outcome of a script that was told to stop: why, and how
// it ended then. Either may be what somebody looks for. ended is nil if it
// exited with 0.
type stoppedError struct{ cause, ended error }

func (e *stoppedError) Error() string {
	if e.ended == nil {
		return say(e.cause) + "; the script exited with status 0"
	}
	return say(e.cause) + "; " + e.ended.Error()
}

func (e *stoppedError) Unwrap() []error {
	if e.ended == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.ended}
}

// say puts the causes of package async into the words of this program.
func say(cause error) string {
	switch cause := cause.(type) {
	case *async.TimeoutError:
		return fmt.Sprintf("stopped after %v, the limit of -timeout", cause.Limit)
	case *async.WatchdogError:
		return cause.Err.Error()
	}
	return cause.Error()
}

// stopped adds the cause of ctx to the end of a script, if it has one.
func stopped(ctx context.Context, ended error) error {
	if cause := context.Cause(ctx); cause != nil {
		return &stoppedError{cause, ended}
	}
	return ended
}

// brief returns the part of err that says everything. The scopes on its way have
// each added the cause that they were cancelled with.
func brief(err error) error {
	var lines []error
	if told, ok := errors.AsType[*stoppedError](err); ok {
		lines = append(lines, told)
	}
	if errors.Is(err, errStuck) {
		lines = append(lines, errStuck)
	}
	if len(lines) == 0 {
		return err
	}
	return errors.Join(lines...)
}

// statusFailed is the exit status when the program, not the script, has failed.
// It is that of ssh(1).
const statusFailed = 255

// withStatus gives err the exit status of the program. Why a script was stopped
// counts for more than how it ended then, and a script that nobody knows the
// end of for more than both.
func withStatus(err error) error {
	if err == nil || errors.As(err, new(*cli.UsageError)) {
		return err
	}
	code := statusFailed
	signal, signalled := errors.AsType[*cli.SignalError](err)
	exit, exited := errors.AsType[*ExitError](err)
	unknown := errors.As(err, new(*AbandonedError)) || errors.Is(err, errLost)
	switch {
	case unknown, errors.As(err, new(*async.WatchdogError)):
	case signalled:
		code = signal.ExitStatus()
	case errors.As(err, new(*async.TimeoutError)):
		code = cli.StatusDeadline
	case exited && !errors.As(err, new(*stoppedError)):
		code = exit.ExitStatus()
	}
	return &cli.ExitError{Code: code, Err: brief(err)}
}
