package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// command is a job: args as a command, with our output and no input. When its ctx
// ends it is told to stop, and killed if it has not after grace. Example runstep
// does more.
func command(args []string, grace time.Duration, std cli.Streams) func(context.Context) error {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = std.Out, std.Err
		cmd.WaitDelay = grace
		stopGroup := group(cmd)
		err := cmd.Run()
		stopGroup()
		if err != nil {
			return &jobError{cmd.Args[0], err}
		}
		return nil
	}
}

// A jobError says how a command has failed.
type jobError struct {
	name string
	err  error
}

func (e *jobError) Error() string { return fmt.Sprintf("%s: %v", e.name, e.err) }

// Unwrap returns the error of package exec.
func (e *jobError) Unwrap() error { return e.err }

// ExitStatus is that of the command, or 128 and the number of the signal that has
// ended it.
func (e *jobError) ExitStatus() int {
	var exit *exec.ExitError
	if !errors.As(e.err, &exit) {
		return cli.StatusFailed
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}
