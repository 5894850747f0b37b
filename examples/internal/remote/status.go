//go:build unix

package remote

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// UntilSignal runs run in a scope, and stops it at the first INT, TERM or HUP:
// ctx is cancelled, with a *cli.SignalError as the cause. A second one does not
// end the process either, or it would leave behind what is being stopped: hurry
// is done then, which is to end every grace. Only a third has its usual effect.
//
// That nobody reads the output any more is an error of a Write, not the end of
// the process: the other side has to be told.
func UntilSignal(ctx context.Context, name string, run func(ctx, hurry context.Context) error) error {
	cli.FailWritesToClosedPipes()
	return async.Scope(ctx, func(hurry context.Context) error {
		ctx, stop := context.WithCancelCause(hurry)
		defer stop(nil)
		cli.OnSignal(hurry, func(sig os.Signal) error {
			err := &cli.SignalError{Signal: sig}
			if ctx.Err() != nil {
				return err
			}
			stop(err)
			return nil
		}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		return run(ctx, hurry)
	}, async.Name(name))
}

// Status returns the exit status for what has come of a script. Why it was
// stopped counts for more than how it ended then; and for more than both, that
// nobody knows its end: that is failed, as is all that the script is not to
// blame for. The end of a script has a method ExitStatus() int.
func Status(err error, unknown bool, failed int) int {
	told, stopped := errors.AsType[*StoppedError](err)
	cause := err
	if stopped {
		cause = told.Cause
	}
	status, ok := cli.StopStatus(cause)
	signal, signalled := errors.AsType[*cli.SignalError](err)
	var end interface{ ExitStatus() int }
	switch {
	case unknown:
	case signalled: // before there was a script, or while it was stopped for another cause
		return signal.ExitStatus()
	case stopped && ok:
		return status
	case !stopped && errors.As(err, &end):
		return end.ExitStatus()
	}
	return failed
}
