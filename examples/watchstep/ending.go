//go:build unix

package main

import (
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/proc"
)

// statusWatchdog is the exit status beside those of cli.
const statusWatchdog = 3

// end makes an exit status of how the command has ended. A stop is told by its
// cause alone: not by the command's own status, which can be anything, nor by
// the clock. The message has both.
func end(result proc.Result, err error) error {
	if err == nil {
		return nil
	}
	cause := result.Cause
	if result.Pid == 0 {
		cause = err // it was stopped before it was started, or could not be
	}
	switch status, _ := cli.StopStatus(cause); {
	case errors.As(cause, new(*async.WatchdogError)):
		return ending("given up", statusWatchdog, err)
	case errors.As(cause, new(*cli.SignalError)):
		return ending("cancelled", status, err)
	case status == cli.StatusDeadline:
		return ending("too late", status, err)
	default:
		return ending("failed", status, err)
	}
}

func ending(word string, status int, err error) error {
	return &cli.ExitError{Code: status, Err: fmt.Errorf("%s: %w", word, err)}
}
