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
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// home is the context of the tasks that wait for the system: for the process,
// for output, for a function of the user. They belong to the root, not to the
// scope of the caller, for two reasons: none may have to wait for a slot of a
// Limit or for a goroutine of a pool, or the command would stand still; and one
// that never returns must not keep the caller. Each is awaited, with a bound
// where one is due.
var home = context.Background()

// Run runs a command in a process group of its own, as a task with the given
// options, such as async.Timeout. It returns when the command has ended, nothing
// of its group is left, and its output has been written. Stopping takes at most
// about the grace, and twice GiveUp and Linger where the system or a writer
// does not do its part.
//
// The error is nil if the exit status is 0 and nobody has stopped the command:
// whatever it has left behind, see Result.Notes. Otherwise it is, or wraps, an
// *ExitError, which matches the cause as well; an *OutputError if output was
// lost; the error of os/exec if the command could not be started; or, if ctx was
// done before that, the cause alone. The Result is valid beside every error.
//
// The options Name and OnAbort are Run's own: Signalling sees what an abort hook
// would.
func Run(ctx context.Context, c Command, opts ...async.TaskOption) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := newProcess(c, cancel)
	task := async.Start(ctx, p.run, append(opts[:len(opts):len(opts)],
		async.Name(p.c.Name),
		async.OnAbort(p.stop),
		async.HookTimeout(p.c.Grace+2*p.c.GiveUp),
	)...)
	// The task ends in time by itself, and its outcome is wanted in any case.
	_, err := task.Wait(context.WithoutCancel(ctx))
	return p.result, join(err, p.err)
}

// A process is one run of a command. Its handler is run, its abort hook is
// stop; both have returned when its task settles.
type process struct {
	c    Command
	fail func(cause error) // stops the run

	// started is closed by run when the fields up to ending are written, or
	// will not be.
	started chan struct{}
	group   group // 0 if nothing was started
	leader  *async.Future[*os.ProcessState]
	pumps   []*pump
	given   context.Context // done when the group could not be killed
	giveUp  context.CancelFunc

	patience context.Context // done when there is to be no grace

	// ending makes the way to the end one. What it writes is read by run when it
	// has been through it: Cause, Left, Killed and Survived of result, and told.
	ending sync.Once
	told   []*async.Future[struct{}] // calls of functions of the user

	result Result
	lost   error // output
	err    error
}

func newProcess(c Command, fail func(error)) *process {
	if c.Name == "" && len(c.Args) > 0 {
		c.Name = filepath.Base(c.Args[0])
	}
	c.Grace = orDefault(c.Grace, DefaultGrace)
	c.Linger = orDefault(c.Linger, DefaultLinger)
	c.GiveUp = orDefault(c.GiveUp, DefaultGiveUp)
	return &process{c: c, fail: fail, started: make(chan struct{}), patience: home, result: Result{Code: -1}}
}

// orDefault returns d if it is not 0, at least 0 and at most a year, so that
// sums of such times do not overflow.
func orDefault(d, by time.Duration) time.Duration {
	if d == 0 {
		return by
	}
	return min(max(d, 0), 365*24*time.Hour)
}

// run starts the command and attends to it until everything has ended. It fails
// only if it could not; else err is how it went, whatever ctx is by then.
func (p *process) run(ctx context.Context) error {
	if p.c.Hurry != nil {
		var cancel context.CancelFunc
		p.patience, cancel = context.WithCancel(home)
		defer cancel()
		defer context.AfterFunc(p.c.Hurry, cancel)()
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	state, err := p.leader.Wait(p.given)
	if state != nil {
		p.result.ended(state)
		p.linger()
	}
	p.end(nil)
	p.drain()
	p.err = p.outcome(ctx, err)
	return nil
}

// begin starts the command and all that waits for it.
func (p *process) begin(ctx context.Context) error {
	defer close(p.started)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd, err := p.start()
	if err != nil {
		return fmt.Errorf("%s: %w", p.c.Name, err)
	}
	p.given, p.giveUp = context.WithCancel(home)
	p.leader = async.Execute(home, func(context.Context) (*os.ProcessState, error) {
		err := cmd.Wait()
		if cmd.ProcessState != nil {
			err = nil // it tells all
		}
		return cmd.ProcessState, err
	}, async.Name("wait for "+p.c.Name))
	if p.c.Started != nil {
		p.tell(func() { p.c.Started(p.group.id) })
	}
	for _, u := range p.pumps {
		u.start()
	}
	return nil
}

// start starts the command.
func (p *process) start() (*exec.Cmd, error) {
	if len(p.c.Args) == 0 {
		return nil, errors.New("no command")
	}
	cmd := exec.Command(p.c.Args[0], p.c.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = p.c.Dir, p.c.Env, p.c.ExtraFiles
	if p.c.Stdin != nil {
		cmd.Stdin = p.c.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	theirs, err := p.connect(cmd)
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close() // the command has its own, and their end is the end of the pipe
	}
	if err != nil {
		for _, u := range p.pumps {
			_ = u.r.Close()
		}
		return nil, err
	}
	p.result.Pid = cmd.Process.Pid
	p.group = group{p.result.Pid}
	return cmd, nil
}

// drain waits for the pumps, and ends those that wait for somebody outside the
// group or for a writer.
func (p *process) drain() {
	wait := p.c.Linger
	if p.result.Survived {
		wait = 0
	}
	var ends []*async.Future[pumped]
	for _, u := range p.pumps {
		u.expire(wait)
		ends = append(ends, u.done)
	}
	for i, r := range async.AwaitAll(home, wait+p.c.GiveUp, ends...) {
		p.result.Held = p.result.Held || r.Value.held
		err := r.Value.err
		if r.Err != nil {
			err = &OutputError{p.pumps[i].stream, ErrStuck}
		}
		if err != p.result.Cause { // which is told as that
			p.lost = join(p.lost, err)
		}
	}
}

// outcome is the error of the run. waiting is what went wrong while the leader
// was waited for.
func (p *process) outcome(ctx context.Context, waiting error) error {
	var ended, lost error
	r := &p.result
	if r.State == nil || !r.State.Success() || r.Cause != nil || r.Survived {
		ended = &ExitError{Name: p.c.Name, Result: *r, stop: ctx.Err()}
	}
	if p.lost != nil {
		lost = fmt.Errorf("%s: %w", p.c.Name, p.lost)
	}
	if p.given.Err() != nil {
		waiting = nil // it was given up, and ended says so
	}
	p.giveUp()
	return join(ended, lost, waiting, p.heard())
}

// join joins errors, and leaves alone what is the only one.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
