//go:build unix

// Package foreground is for programs that run a command in place of their
// caller, as env(1) and timeout(1) do: the signals that they get stop the
// command, and their exit status is the command's.
package foreground

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/proc"
)

// StopOnSignals returns the context to run c in, and sets its Hurry. The first
// INT, TERM or HUP that this process gets cancels the context, with a
// *cli.SignalError as the cause; one that comes when c is being stopped already,
// for whatever cause, ends the grace. This holds until the scope of ctx ends.
func StopOnSignals(ctx context.Context, c *proc.Command) context.Context {
	step, stop := context.WithCancelCause(ctx)
	hurry, hurryUp := context.WithCancel(ctx)
	var stopping atomic.Bool
	cli.OnSignal(ctx, func(sig os.Signal) error {
		if stopping.Swap(true) {
			hurryUp()
		} else {
			stop(&cli.SignalError{Signal: sig})
		}
		return nil
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)

	c.Hurry = hurry
	told := c.Signalling
	c.Signalling = func(sig syscall.Signal, cause error) {
		stopping.Store(true)
		if told != nil {
			told(sig, cause)
		}
	}
	return step
}
