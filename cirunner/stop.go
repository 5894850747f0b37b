//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/runner"
)

// sameWish is how far apart the signals of one decision may be: a wrapper passes
// on what its group was sent already, and timeout sends its signal to the child
// and to the group. Two of these are not a person who has lost patience.
const sameWish = 300 * time.Millisecond

// A stopper knows how a run was stopped: by whom first, and that decides the exit
// status.
type stopper struct {
	mu    sync.Mutex
	r     *runner.Runner // nil before the run and after it
	ctx   context.Context
	first error // a *cli.SignalError, or why the run cannot go on
	quit  bool  // it was only drained
	ended bool
	last  time.Time // when the last signal that interrupts came
}

// listen hears the signals until the scope of ctx ends: the first that
// interrupts cancels the run, the second fails that scope, and that aborts it.
// After that they have their usual effect, and a third ends the process. When
// the run has ended and only tidies up, they have none.
func (s *stopper) listen(ctx context.Context) {
	cli.OnSignal(ctx, func(sig os.Signal) error { return s.heard(sig, time.Now()) },
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
}

// heard is called with each signal. Its error is to abort the run.
func (s *stopper) heard(sig os.Signal, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := &cli.SignalError{Signal: sig}
	switch {
	case s.ended:
	case sig == syscall.SIGQUIT:
		if s.first == nil {
			s.first, s.quit = why, true
		}
		if s.r != nil {
			s.r.Drain(s.ctx, "drained: "+why.Error())
		}
	case !s.last.IsZero() && at.Sub(s.last) < sameWish:
	case s.note(why):
		s.last = at
	default:
		return why
	}
	return nil
}

// begin says that there is a run that can be stopped, until end is called; the
// scope of ctx outlasts that. It is stopped at once if that was wished before.
func (s *stopper) begin(ctx context.Context, r *runner.Runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.r = ctx, r
	switch {
	case s.first == nil:
	case s.quit:
		r.Drain(ctx, "drained: "+s.first.Error())
	default:
		r.Cancel(ctx, s.first)
	}
}

// end says that the run has ended: there is nothing left to stop.
func (s *stopper) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r, s.ended = nil, true
}

// note notes why the run is stopped, and stops it. It reports whether that is
// the first reason. The caller holds the lock.
func (s *stopper) note(why error) (first bool) {
	if s.first != nil && !s.quit {
		return false
	}
	s.first, s.quit = why, false
	if s.r != nil {
		s.r.Cancel(s.ctx, why)
	}
	return true
}

// why returns why the run was stopped, nil if it was not.
func (s *stopper) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// brokenOutput is why a run is stopped that nobody can look at any more.
type brokenOutput struct{ err error }

func (e *brokenOutput) Error() string { return "cannot write: " + e.err.Error() }

// Unwrap returns the error of the write.
func (e *brokenOutput) Unwrap() error { return e.err }

// outputFailed cancels the run. It is called where a line is written, so it must
// not wait for anybody who writes.
func (s *stopper) outputFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(&brokenOutput{err})
}

func isSignal(err error) bool { return errors.As(err, new(*cli.SignalError)) }
