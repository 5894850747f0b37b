//go:build !unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// command is a job that fails: only Unix has the process groups that are needed
// to end a command with all that it has started.
func command([]string, time.Duration, cli.Streams) func(context.Context) error {
	return func(context.Context) error {
		return errors.New("there are no process groups on this system, so no command can be run; try -demo")
	}
}
