//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/proc"
)

// giveUp is how long a client may take to end after what it runs was killed.
const giveUp = 10 * time.Second

// A stopping is how a script in a container is stopped: by signals in the container. The
// client is not asked, since clients do not agree in what they do when they get one.
type stopping struct {
	c     *Container
	grace time.Duration
	hurry context.Context

	// The fields below are set by watch, which has returned before they are read.

	cause  error
	killed bool
}

// watch waits for the end of ctx, and stops the script then. finished is done when the
// client has ended; end ends the client.
func (s *stopping) watch(ctx, scope, finished context.Context, end context.CancelCauseFunc) {
	select {
	case <-finished.Done():
		return
	case <-ctx.Done():
	}
	if finished.Err() != nil { // both were done: the script has ended by itself
		return
	}
	s.cause = context.Cause(ctx)
	if s.grace > 0 && s.hurry.Err() == nil {
		_ = s.c.signal(scope, "TERM") // after the grace nothing of the script is left, whatever has become of that
		wait := time.NewTimer(s.grace)
		defer wait.Stop()
		select {
		case <-finished.Done():
			return
		case <-s.hurry.Done():
		case <-wait.C:
		}
	}
	s.killed = true
	_ = s.c.kill(scope)
	select {
	case <-finished.Done():
	case <-time.After(giveUp):
		end(errors.New("the client of the engine has not ended"))
	}
}

// result is that of the script, which tells why it was stopped.
func (s *stopping) result(ctx context.Context, name string, r proc.Result, err error) (proc.Result, error) {
	if s.cause != nil {
		r.Cause, r.Killed = s.cause, s.killed
		return r, &StopError{Exit: &proc.ExitError{Name: name, Result: r}, Cause: s.cause}
	}
	if r.Signal != 0 {
		return r, fmt.Errorf("the client of the engine was ended by %s", proc.SignalName(r.Signal))
	}
	if err == nil {
		return r, nil
	}
	running, status, unknown := s.c.Running(ctx)
	switch {
	case unknown != nil: // whose exit status the client has returned nobody knows
		return r, unknown
	case !running:
		return r, fmt.Errorf("the container has ended: %s", status)
	}
	return r, err
}

// A StopError is that a script in a container was stopped.
type StopError struct {
	Exit  *proc.ExitError // how it has ended
	Cause error           // why it was stopped
}

// Error tells how the script has ended, and why.
func (e *StopError) Error() string { return e.Exit.Error() }

// Unwrap returns both.
func (e *StopError) Unwrap() []error { return []error{e.Exit, e.Cause} }
