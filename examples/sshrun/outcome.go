//go:build unix

package main

import (
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/remote"
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

// statusFailed is the exit status when the program, not the script, has failed.
// It is that of ssh(1).
const statusFailed = 255

// withStatus gives err the exit status of the program.
func withStatus(err error) error {
	if err == nil || errors.As(err, new(*cli.UsageError)) {
		return err
	}
	unknown := errors.As(err, new(*AbandonedError)) || errors.Is(err, errLost)
	return &cli.ExitError{Code: remote.Status(err, unknown, statusFailed), Err: remote.Brief(err)}
}
