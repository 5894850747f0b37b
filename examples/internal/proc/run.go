//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A process is one run of a command. Its handler is run, its abort hook is
// stop; both have returned when its task settles.
type process struct {
	c    Command
	fail func(cause error) // stops the run

	started chan struct{} // closed by run when there is something to stop, or never will be
	group   group
	leader  *async.Future[*os.ProcessState]
	pumps   []*pump

	given  context.Context // done when the group could not be killed
	giveUp context.CancelFunc

	ctx    context.Context // of the scope that everything here belongs to
	ending sync.Once       // makes the way to the end one
	told   []*async.Future[struct{}]
	lost   error // output
	result Result
	err    error
}

func newProcess(c Command, fail func(error)) *process {
	if c.Name == "" && len(c.Args) > 0 {
		c.Name = filepath.Base(c.Args[0])
	}
	c.Grace = orDefault(c.Grace, DefaultGrace)
	c.Linger = orDefault(c.Linger, DefaultLinger)
	c.GiveUp = orDefault(c.GiveUp, DefaultGiveUp)
	return &process{c: c, fail: fail, started: make(chan struct{}), result: Result{Code: -1}}
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
	if ctx.Err() != nil {
		close(p.started)
		return context.Cause(ctx)
	}
	cmd, err := p.start()
	if err != nil {
		close(p.started)
		return fmt.Errorf("%s: %w", p.c.Name, err)
	}
	// Stopping is the hook's affair; nothing here is to be cut short by it.
	err = async.Shield(ctx, math.MaxInt64, func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			return p.attend(ctx, cmd)
		}, async.Name(p.c.Name), async.DetachAfter(0))
	})
	p.err = p.outcome(ctx, err)
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
	p.group = group{cmd.Process.Pid}
	p.result.Pid = cmd.Process.Pid
	return cmd, nil
}

// attend is the body of the run. It fails only if something has to be left
// behind.
func (p *process) attend(ctx context.Context, cmd *exec.Cmd) (err error) {
	p.ctx = ctx
	p.given, p.giveUp = context.WithCancel(ctx)
	defer p.giveUp()
	p.leader = async.Execute(ctx, func(context.Context) (*os.ProcessState, error) {
		err := cmd.Wait()
		if cmd.ProcessState != nil {
			err = nil // it tells all
		}
		return cmd.ProcessState, err
	}, async.Name("wait for "+p.c.Name))
	for _, u := range p.pumps {
		u.start(ctx)
	}
	p.tell(func() { p.c.Started(p.group.id) }, p.c.Started != nil)
	close(p.started)

	state, err := p.leader.Wait(p.given)
	if state == nil {
		err = errors.Join(errLeft, err)
	} else {
		p.result.ended(state)
	}
	p.sweep()
	return errors.Join(err, p.drain(), p.heard())
}

// errLeft has the scope leave what it cannot end.
var errLeft = errors.New("something is left behind")

// drain ends the pumps.
func (p *process) drain() error {
	wait := p.c.Linger
	if p.result.Survived {
		wait = 0
	}
	var ends []*async.Future[pumped]
	for _, u := range p.pumps {
		u.expire(wait)
		ends = append(ends, u.done)
	}
	var stuck error
	for i, r := range async.AwaitAll(p.ctx, wait+p.c.GiveUp, ends...) {
		p.result.Held = p.result.Held || r.Value.held
		err := r.Value.err
		if r.Err != nil {
			err = &OutputError{p.pumps[i].stream, ErrStuck}
			stuck = errLeft
		}
		if p.lost == nil {
			p.lost = err
		}
	}
	return stuck
}

// outcome is the error of the run. left is what attend has left behind.
func (p *process) outcome(ctx context.Context, left error) error {
	var errs []error
	r := &p.result
	if r.State == nil || !r.State.Success() || r.Cause != nil || r.Survived {
		errs = append(errs, &ExitError{Name: p.c.Name, Result: *r, stop: ctx.Err()})
	}
	if p.lost != nil && !errors.Is(r.Cause, p.lost) {
		errs = append(errs, fmt.Errorf("%s: %w", p.c.Name, p.lost))
	}
	if left != nil && len(errs) == 0 {
		errs = append(errs, left)
	}
	return join(errs...)
}

// join joins errors, and leaves alone what is the only one.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
