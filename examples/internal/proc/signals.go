//go:build unix

package proc

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// StopOnSignals returns the context to run c in, and sets its Hurry. The first
// INT, TERM or HUP that this process gets cancels the context, with a
// *cli.SignalError as the cause; one that comes when c is being stopped already,
// for whatever cause, ends the grace. This holds until the scope of ctx ends.
func StopOnSignals(ctx context.Context, c *Command) context.Context {
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
