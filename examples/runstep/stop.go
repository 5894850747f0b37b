//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/proc"
)

// stopOnSignals returns the context to run c in. The first INT, TERM or HUP
// cancels it, with a *cli.SignalError; one that comes when the step is being
// stopped already, for whatever cause, ends the grace. What is done is said.
func stopOnSignals(ctx context.Context, c *proc.Command, say io.Writer) context.Context {
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
	name := c.Name
	c.Signalling = func(sig syscall.Signal, cause error) {
		stopping.Store(true)
		why := "it has left processes behind"
		if cause != nil {
			why = cause.Error()
		}
		fmt.Fprintf(say, "runstep: %s: %s: %s\n", name, proc.SignalName(sig), why)
	}
	return step
}

// failOnBrokenPipe makes writing to a pipe that nobody reads an error. Otherwise
// it would end us, before the step has ended. The signal is taken rather than
// ignored: the step would inherit that.
func failOnBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
