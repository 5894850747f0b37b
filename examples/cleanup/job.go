//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/foreground"
	"github.com/ambit-go/ambit/proc"
)

// command is a job: args as a command in a process group of its own, with our
// output and no input. It is told to stop when its ctx ends and at the first
// signal, and killed after the grace or at the second one. Nothing of the group
// is left when it returns.
func command(args []string, grace time.Duration, std cli.Streams) func(context.Context) error {
	return func(ctx context.Context) error {
		c := proc.Command{Args: args, Grace: grace, Stdout: foreground.Piped(std.Out), Stderr: foreground.Piped(std.Err)}
		ctx = foreground.StopOnSignals(ctx, &c)
		result, err := proc.Run(ctx, c)
		if err == nil {
			return nil
		}
		failed := &jobError{text: err.Error(), err: err, cause: result.Cause, status: foreground.ExitStatus(result, err)}
		if exit := new(proc.ExitError); errors.As(err, &exit) {
			failed.text = exit.Name + ": " + result.Outcome() // the cause is told anyhow
		}
		return failed
	}
}
