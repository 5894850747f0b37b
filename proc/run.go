//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Run runs a command in a process group of its own, as a task with the given options, and blocks
// until the command has ended, nothing of its group is left, and its output has been written.
//
//	result, err := proc.Run(ctx, proc.Command{Args: []string{"make", "test"}, Stdout: log}, async.Timeout(time.Hour))
//
// # Details
//
// Run returns so in every case but those that [Result.Survived], [Result.Held], [ErrStuck] and
// [Command.Stdin] tell of.
//
// The command is stopped when ctx ends, its scope is cancelled, or an option cancels the task:
// [context.Cause] of that is the Cause of the Result. Stopping takes at most about a grace for each
// of Signals, and twice GiveUp and Linger where the system or a writer does not do its part. If ctx
// is done before the command is started, it is not started.
//
// The error is nil if the exit status is 0 and nobody has stopped the command, whatever it has left
// behind: see [Result.Notes]. Otherwise it is, or wraps, an *[ExitError], which matches the cause
// as well; an *[OutputError] or *[InputError] if output or input was lost; the error of os/exec if
// the command could not be started, or its end could not be waited for; the *PanicError of a
// function of c; or, if ctx was done before the start, the cause. The Result is valid beside every
// error.
//
// The task has the name of the command, unless there is an [async.Name] among opts. An abort hook
// of opts runs beside the stop. A command that was told to stop and exits with 0 is no failure of a
// scope that was cancelled; one that exits otherwise, or is killed, is listed, unless the task is
// an [async.Daemon].
//
// With [async.Restart] each run is a command of its own; the Result is that of the last. Input that
// a reader has given to one run is not given to the next; a run fails with [ErrStuck], and is not
// started, while a Read or Write of the one before has not returned.
//
// Goroutines may call Run at the same time, also with the same c.
func Run(ctx context.Context, c Command, opts ...async.TaskOption) (Result, error) {
	c = c.withDefaults()
	// These are of the last run, and of the last that had something started. The task writes
	// them, and is joined before they are read.
	var p, started *process
	_, err := async.Start(ctx, func(ctx context.Context) error {
		p = &process{c: c, result: Result{Code: -1}}
		if p.err = started.stuck(); p.err == nil {
			p.err = p.run(ctx)
		}
		if p.result.Pid != 0 {
			started = p
		}
		return p.err
	}, append([]async.TaskOption{async.Name(c.Name)}, opts...)...).Join(ctx)
	if p == nil {
		return Result{Code: -1}, err // it has not run: refused, or cancelled while it was queued
	}
	return p.result, p.alone(err)
}

// stuck fails if a reader or writer has not returned from a call of p, which may be
// nil. In the next run it would be called by two at once.
func (p *process) stuck() error {
	if p == nil {
		return nil
	}
	for _, u := range p.pumps {
		if _, _, ended := u.done.Result(); !ended {
			return fmt.Errorf("%s: %w", p.c.Name, &OutputError{u.stream, ErrStuck})
		}
	}
	if p.feed != nil {
		if _, _, ended := p.feed.done.Result(); !ended {
			return fmt.Errorf("%s: %w", p.c.Name, &InputError{ErrStuck})
		}
	}
	return nil
}

// withDefaults returns c with the defaults in place of zeros.
func (c Command) withDefaults() Command {
	switch {
	case c.Name != "":
	case len(c.Args) == 0 || c.Args[0] == "":
		c.Name = "proc"
	default:
		c.Name = filepath.Base(c.Args[0])
	}
	if len(c.Signals) == 0 {
		c.Signals = []syscall.Signal{syscall.SIGTERM}
	}
	c.Grace = orDefault(c.Grace, DefaultGrace)
	c.Linger = orDefault(c.Linger, DefaultLinger)
	c.GiveUp = orDefault(c.GiveUp, DefaultGiveUp)
	return c
}

// orDefault returns d if it is not 0, at least 0 and at most a year, so that
// sums of such times do not overflow.
func orDefault(d, by time.Duration) time.Duration {
	if d == 0 {
		return by
	}
	return min(max(d, 0), 365*24*time.Hour)
}

// home is the context of the tasks that wait for the system: for the process,
// for output, for a function of the user. They belong to the root, not to the
// scope of the caller, for two reasons: none may have to wait for a slot of a
// Limit or for a goroutine of a pool, or the command would stand still; and one
// that never returns must not keep the caller. Each is awaited, with a bound
// where one is due. None looks at its own context: Shutdown cancels it while the
// command is still being stopped.
var home = context.Background()

// A process is one run of a command. Everything in it belongs to the goroutine of
// run; others get what they need when they are started.
type process struct {
	c    Command
	fail context.CancelCauseFunc // stops the run

	cmd    *exec.Cmd
	group  group
	leader *async.Future[*os.ProcessState] // settles when the command has ended and is reaped
	pumps  []*pump
	feed   *feed // nil if stdin is a file

	patience context.Context // done when nothing is to be waited for that can be killed
	told     []told

	result Result
	lost   error // output and input
	err    error // what run has returned
}

// run starts the command and attends to it until everything has ended.
//
// It waits on channels, not on futures under ctx: that would lend the slot of a
// Limit, which is to bound how many commands run.
func (p *process) run(ctx context.Context) error {
	ctx, p.fail = context.WithCancelCause(ctx)
	defer p.fail(nil)
	defer p.hurry()()
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.group.forget()
	select {
	case <-p.leader.Done():
	case <-ctx.Done():
	}
	if p.ended() {
		p.linger(ctx)
	} else {
		p.result.Cause = context.Cause(ctx)
		p.stop()
	}
	p.drain()
	return p.outcome(ctx)
}

// hurry makes patience of Hurry. The function it returns ends that.
func (p *process) hurry() (done func()) {
	p.patience = home
	if p.c.Hurry == nil {
		return func() {}
	}
	patience, cancel := context.WithCancel(home)
	p.patience = patience
	stop := context.AfterFunc(p.c.Hurry, cancel)
	return func() { stop(); cancel() }
}

// outcome is the error of the run.
func (p *process) outcome(ctx context.Context) error {
	r := &p.result
	state, waiting, ended := p.leader.Result()
	if ended && state != nil {
		r.ended(state)
	}
	var failed error
	switch {
	case waiting != nil:
		failed = fmt.Errorf("%s: %w", p.c.Name, waiting)
		if r.Cause != nil {
			failed = errors.Join(failed, r.Cause)
		}
	case r.State == nil || !r.State.Success() || r.Cause != nil || r.Survived:
		failed = &ExitError{Name: p.c.Name, Result: *r, stop: ctx.Err()}
	}
	if p.lost != nil {
		p.lost = fmt.Errorf("%s: %w", p.c.Name, p.lost)
	}
	return join(failed, p.lost, p.heard())
}

// alone returns the error of the run without what the task has put around it
// because ctx has ended: it tells why the command was stopped itself, and an end of
// ctx that came after that of the command has changed nothing of how it went.
func (p *process) alone(err error) error {
	e, ok := err.(*async.ScopeError)
	if ok && p.result.Pid != 0 && len(e.Errors) == 1 && e.Errors[0] == p.err { // p.err is of a type of ours
		return p.err
	}
	return err
}

// join joins errors, and leaves alone what is the only one.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
