//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/ambit-go/ambit/async"
)

// This file starts a command, or says why it cannot be started.

// begin starts the command and all that waits for it.
func (p *process) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.start(); err != nil {
		return fmt.Errorf("%s: %w", p.c.Name, err)
	}
	cmd := p.cmd
	p.leader = async.Execute(home, func(context.Context) (*os.ProcessState, error) {
		err := cmd.Wait()
		if cmd.ProcessState != nil {
			err = nil // it tells all
		}
		return cmd.ProcessState, err
	}, async.Name("wait for "+p.c.Name))
	if p.c.Started != nil {
		p.tell("Started", func() { p.c.Started(p.result.Pid) })
	}
	for _, u := range p.pumps {
		u.start()
	}
	if p.feed != nil {
		p.feed.start()
	}
	return nil
}

// start starts the command.
func (p *process) start() error {
	if err := p.c.check(); err != nil {
		return err
	}
	cmd := exec.Command(p.c.Args[0], p.c.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = p.c.Dir, p.c.Env, p.c.ExtraFiles
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.c.DieWithParent {
		dieWithParent(cmd.SysProcAttr)
	}
	theirs, err := p.connect(cmd)
	if err == nil {
		err = explained(cmd, cmd.Start())
	}
	for _, f := range theirs {
		_ = f.Close() // the command has its own, and their end is the end of the pipe
	}
	if err != nil {
		p.disconnect()
		return err
	}
	p.cmd, p.result.Pid, p.group = cmd, cmd.Process.Pid, groupOf(cmd.Process)
	return nil
}

// check fails if something is missing that the command needs, and says which: what the
// system says of a missing directory is what it says of a missing program, with the
// name of the program.
func (c *Command) check() error {
	switch {
	case len(c.Args) == 0:
		return errors.New("no command: Args is empty: set it to the program and its arguments")
	case c.Args[0] == "":
		return errors.New("no command: Args[0] is empty: set it to the program")
	}
	for _, sig := range c.Signals {
		if sig <= 0 || sig == syscall.SIGKILL || sig == syscall.SIGSTOP {
			return fmt.Errorf("%s is among Signals, and asks no command to end: KILL comes after them by itself, "+
				"and is the only one with a negative Grace", SignalName(sig))
		}
	}
	for _, f := range c.ExtraFiles {
		if err := checkOpen("an extra file", f); err != nil {
			return err
		}
	}
	if c.Dir == "" {
		return nil
	}
	_, err := os.Stat(c.Dir + "/.") // fails for a file, and where the directory may not be entered, too
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = fmt.Errorf("working directory: %w", &fs.PathError{Op: "chdir", Path: c.Dir, Err: failed.Err})
	}
	return err
}

// explained returns err, with which cmd was not started, and says what is missing if the
// program is there: the system names the program.
func explained(cmd *exec.Cmd, err error) error {
	if !errors.Is(err, fs.ErrNotExist) || cmd.Path == "" {
		return err
	}
	path := cmd.Path
	if cmd.Dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	if _, missing := os.Stat(path); missing != nil {
		return err
	}
	return fmt.Errorf("%w: the program is there, its interpreter is not: a script names that in its first line", err)
}
