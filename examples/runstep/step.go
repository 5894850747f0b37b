//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ambit-go/ambit/proc"
)

// shell runs a script as pipelines are used to: the first command that fails is
// the end of it, and nobody's start-up files change anything.
var shell = []string{"bash", "--noprofile", "--norc", "-eo", "pipefail"}

// patience is how long a reader of the output may stand still, as a pager does, when
// the step has ended: what is left of its log would else be lost, and the step fail. A
// process that cannot be killed is waited for as long.
const patience = 24 * time.Hour

// command makes the command of what the flags and arguments say. Its output goes
// through a pipe of its own: what it leaves running would else hold ours open, and
// with it whoever reads that.
func (cfg *config) command(args []string) (proc.Command, error) {
	c := proc.Command{
		Dir:    cfg.dir,
		Grace:  cmp.Or(cfg.grace, -1), // proc takes 0 for its default
		Linger: cmp.Or(cfg.linger, -1),
		GiveUp: patience,
		Stdout: struct{ io.Writer }{os.Stdout},
		Stderr: struct{ io.Writer }{os.Stderr},
	}
	if err := cfg.check(); err != nil {
		return c, err
	}
	if info, err := os.Stat(cfg.dir); cfg.dir != "" && (err != nil || !info.IsDir()) {
		return c, usage("-C %s: not a directory", cfg.dir)
	}
	err := cfg.choose(&c, args)
	c.Name = cmp.Or(cfg.name, c.Name)
	return c, err
}

// choose chooses what is run: the demonstration, a script in a file, a command, or the script on our input.
func (cfg *config) choose(c *proc.Command, args []string) error {
	switch {
	case cfg.demo && (cfg.file != "" || len(args) > 0):
		return usage("-demo is a step of its own; leave out the command and -f")
	case cfg.demo:
		cfg.demonstrate(c)
		return nil
	case cfg.file != "":
		return cfg.scriptFile(c, args)
	case len(args) > 0 && args[0] == "":
		return usage(`the command is ""; is a variable empty?`)
	case len(args) > 0:
		c.Name = filepath.Base(args[0])
		c.Args = args
		return nil
	}
	script, err := scriptFromStdin()
	if err != nil {
		return err
	}
	c.Name = "script"
	c.Args = slices.Concat(shell, []string{"/dev/fd/3"}) // the first of ExtraFiles
	c.ExtraFiles = []*os.File{script}
	return nil
}

// demonstrate has the built-in step run, and be stopped after a second.
func (cfg *config) demonstrate(c *proc.Command) {
	c.Name = "demo"
	c.Args = slices.Concat(shell, []string{"-c", demo})
	if cfg.timeout == 0 {
		cfg.timeout, c.Grace = time.Second, 2*time.Second
	}
}

// scriptFile has the script of -f run, with its arguments.
func (cfg *config) scriptFile(c *proc.Command, args []string) error {
	path, err := filepath.Abs(cfg.file) // -C comes later
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return &failure{err, cfg.status(proc.Result{}, err)}
	}
	c.Name = filepath.Base(path)
	c.Args = slices.Concat(shell, []string{path}, args)
	return nil
}

// scriptFromStdin returns the script on our standard input as a file of its own.
// As its standard input the commands of the script could eat the rest.
func scriptFromStdin() (*os.File, error) {
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return nil, usage("nothing to run: give a command after --, a script with -f or on standard input, or -demo")
	}
	file, err := os.CreateTemp("", "runstep")
	if err == nil {
		err = os.Remove(file.Name()) // the descriptor is all that is needed
	}
	if err == nil {
		_, err = io.Copy(file, os.Stdin)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, &failure{fmt.Errorf("the script on standard input: %w", err), cannot}
	}
	return file, nil
}

// The demonstration is a step that takes too long, answers TERM with an exit
// status of its own, and has a child that ignores TERM.
const demo = `
	trap 'echo "step: got TERM, cleaning up"; exit 7' TERM
	(trap '' TERM; echo "child: ignores TERM"; while :; do sleep 0.1; done) &
	echo "step: would take an hour"
	sleep 3600 & wait $!
`
