//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// stop stops a job that does not end by itself, and says why and how it ended
// then. ctx may be cancelled, and mostly is, so all of this is done in a
// stretch that is shielded from that and has a limit of its own.
func (a *attached) stop(ctx context.Context, why error) error {
	if cause := context.Cause(ctx); cause != nil {
		why = cause
	} else if late, ok := errors.AsType[*async.TimeoutError](why); ok {
		why = late // the script's limit; what the roles returned because of it says no more
	}
	var end, lost error
	err := async.Shield(ctx, a.Limits.stopping(), func(ctx context.Context) error {
		end, lost = a.halt(ctx)
		return nil
	})
	if errors.Is(lost, why) || errors.Is(why, lost) {
		lost = nil // that is why
	}
	return errors.Join(&remote.StoppedError{Cause: why, End: end}, lost, err)
}

// halt has the daemon stop the job, reads what it still prints, and asks for its
// status. A daemon that does not help is left with the job.
func (a *attached) halt(ctx context.Context) (end, lost error) {
	if err := a.stopOrKill(ctx); err != nil {
		_ = a.conn.Close()
		lost = a.drain(ctx, true)
		return &AbandonedError{err}, stuck(lost)
	}
	lost = a.drain(ctx, true)
	status, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
		return a.daemon.wait(ctx, a.Name)
	}, async.Name("status")).Await(ctx, a.Limits.Request)
	if err != nil {
		return &AbandonedError{err}, stuck(lost)
	}
	return exited(status), lost
}

// stopOrKill has the daemon stop the job, and kill it once there is to be no
// grace.
func (a *attached) stopOrKill(ctx context.Context) error {
	stopping, giveUp := context.WithCancel(ctx)
	defer giveUp()
	if a.Hurry != nil {
		defer context.AfterFunc(a.Hurry, giveUp)()
	}
	err := a.daemon.stop(stopping, a.Name, a.Limits.Grace)
	if err != nil && stopping.Err() != nil && ctx.Err() == nil {
		err = a.daemon.kill(ctx, a.Name)
	}
	return err
}

// stuck returns err if it is about our side of the output. What the other side
// has done to it is told already.
func stuck(err error) error {
	if errors.Is(err, remote.ErrStuck) {
		return err
	}
	return nil
}
