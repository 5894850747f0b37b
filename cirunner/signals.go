//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/ambit-go/ambit/service"
)

// Package service hears INT and TERM. It knows no stop without a wish to end what
// runs, and leaves HUP to the system, which would end the runner and not its jobs.

// hear returns what brings the signals of this file, until stop is called. A HUP that
// is ignored stays so: nohup has a run go on without its terminal.
func hear() (heard <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// follow does what these signals say: HUP, the end of a terminal, stops the run,
// QUIT drains it.
func (s *session) follow(ctx context.Context, heard <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case sig := <-heard:
			why := &service.SignalError{Signal: sig}
			if sig == syscall.SIGHUP {
				s.stop(why)
				continue
			}
			s.drained = why
			s.runner.Board.SetStatus("draining: what runs goes on to its end; Ctrl-C stops it")
			s.runner.Drain(ctx, "drained: "+why.Error())
		}
	}
}

// isSignal reports whether an error is that of a signal.
func isSignal(err error) bool { return errors.As(err, new(*service.SignalError)) }

// brokenOutput is why a run is stopped that nobody can look at any more.
type brokenOutput struct{ err error }

func (e *brokenOutput) Error() string { return "cannot write: " + e.err.Error() }

// Unwrap returns the error of the write.
func (e *brokenOutput) Unwrap() error { return e.err }
