package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/proc"
)

// errLate is why a command is told to stop before its lock is lost: the store does not
// answer, and the command needs time to end.
var errLate = errors.New("the lock will be lost: the store does not answer")

// pauses are what a command gets from TERM to KILL, and from KILL to the end of the lock. A
// lease of less than a second has shorter ones: a renewal that is sent after 0.3 of it must
// have time to come back before the command gets TERM.
func pauses(lease time.Duration) (grace, last time.Duration) {
	if lease < time.Second {
		return lease / 8, lease / 12
	}
	return lease / 5, 100 * time.Millisecond
}

// execute runs a command while the lock is held. The command ends before the lock can be
// anybody else's: it gets TERM so early that there is time for its grace, and KILL when
// that is over, or at once when the lock was taken away.
func execute(ctx context.Context, p *program, l *line) error {
	if len(l.args) == 0 {
		return usagef("exec needs a command: exec --key KEY -- COMMAND ARGS")
	}
	var result proc.Result
	err := p.m.With(ctx, l.key, func(ctx context.Context) (err error) {
		result, err = underLock(ctx, p, l)
		return err
	}, p.options(l)...)
	var lost *locks.LostError
	var ended *proc.ExitError
	switch {
	case errors.As(err, &lost), errors.Is(err, errLate):
		return &statusError{err, 5}
	case errors.As(err, &ended) && result.State != nil:
		return &statusError{err, result.Status()}
	case err == nil && result.Status() > 0:
		return &statusError{fmt.Errorf("%s: %s", l.args[0], result.Outcome()), result.Status()}
	}
	return err
}

// underLock runs the command. Its ctx ends before the lock does.
func underLock(ctx context.Context, p *program, l *line) (proc.Result, error) {
	hold := locks.From(ctx)
	grace, last := pauses(time.Duration(l.lease))
	hurry, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	ctx, stop := context.WithCancelCause(ctx)
	watching, ended := context.WithCancel(context.WithoutCancel(ctx)) // also when ctx is done and the command is not
	watcher := async.Start(watching, func(ctx context.Context) error {
		watch(ctx, hold, grace, last, stop, kill)
		return nil
	}, async.Name("watch the lock"))
	unguard := func() {}
	result, err := proc.Run(ctx, proc.Command{
		Args:  l.args,
		Env:   append(os.Environ(), fmt.Sprint("LOCK_TOKEN=", hold.Token()), "LOCK_KEY="+hold.Key(), "LOCK_VERSION="+hold.Version()),
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		Grace: grace, Hurry: hurry, DieWithParent: true,
		Started: func(pid int) {
			stop, err := guard(pid)
			if unguard = stop; err != nil {
				fmt.Fprintf(p.stderr, "db-locks: if this program is killed, what the command has started lives on: %v\n", err)
			}
		},
	})
	ended()
	unguard()
	_, _ = watcher.Join(watching)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errLate) {
		err = errors.Join(cause, err)
	}
	return result, err
}

// watch tells the command to stop when the lock has no more time left than the command may
// take, and kills it when the lock is lost or as good as that. It ends with ctx.
func watch(ctx context.Context, hold *locks.Hold, grace, last time.Duration, stop context.CancelCauseFunc, kill func()) {
	for {
		left := hold.Remaining()
		next := left - grace - last
		if next <= 0 {
			stop(errLate)
			next = left - last
		}
		if next <= 0 {
			kill()
			return
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-hold.Done():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}
