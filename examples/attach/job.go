//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Limits are how long each thing may take. All are positive but Script.
type Limits struct {
	Request time.Duration // an answer of the daemon that need not wait
	Script  time.Duration // the script itself; 0 for no limit
	Grace   time.Duration // from TERM to KILL
	Output  time.Duration // from the end of the script to that of its output
}

// stopping is how long stop takes at most.
func (l Limits) stopping() time.Duration { return l.Grace + 2*l.Request + 2*l.Output }

// A Job is a command in a container and what it is attached to.
type Job struct {
	Name           string // of the container
	Image          string
	Cmd            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Notes          io.Writer // remarks for the user
	Limits         Limits

	// Hurry, if it is not nil, ends the grace when it is done. It stops nothing
	// by itself.
	Hurry context.Context
}

// Run runs the job in a container of the daemon. It is attached before it
// starts, so that nothing of its output is missed, and the container is removed
// whatever happens.
//
// The error tells why the job was stopped and how it ended: errors.As finds an
// ExitError, errors.Is the cause. When Run returns, all that it started has
// ended, except a Write to Stdout or Stderr that does not return once the job
// was told to stop: that is named by a StragglerError.
func Run(ctx context.Context, daemon *client, job Job) error {
	l := job.Limits
	return async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(ctx context.Context, _ error) error { return removed(daemon.remove(ctx, job.Name)) })
		err := daemon.create(ctx, job.Name, spec{
			Image: job.Image, Cmd: job.Cmd,
			OpenStdin: true, StdinOnce: true, AttachStdin: true,
			StopTimeout: int((l.Grace + time.Second - 1) / time.Second), // in whole seconds, not 0
		})
		if err != nil {
			return notBegun(ctx, err)
		}
		conn, err := daemon.attach(ctx, job.Name)
		if err != nil {
			return notBegun(ctx, err)
		}
		defer conn.Close()
		if err := daemon.start(ctx, job.Name); err != nil {
			return notBegun(ctx, err)
		}
		return (&attached{Job: job, daemon: daemon, conn: conn}).run(ctx)
	},
		async.Name("container "+job.Name),
		async.HookTimeout(l.Request+time.Second)) // remove keeps to its own limit
}

// removed takes an error of remove. A container that is not there is removed.
func removed(err error) error {
	if refused, ok := errors.AsType[*APIError](err); ok && refused.Status == 404 {
		return nil
	}
	if err != nil {
		return &RemoveError{err}
	}
	return nil
}
