//go:build unix

// Runstep runs a command or a script as a CI runner runs a step: in a process
// group of its own, which is ended as a whole. A step that takes too long, or
// that a signal to runstep stops, gets TERM, and what is left of its group
// after the grace gets KILL. Exit status, signal and cause are all told.
//
//	go run ./examples/runstep -- make test
//	go run ./examples/runstep -timeout 10m -grace 30s -f build.sh
//	echo 'echo hello; exit 3' | go run ./examples/runstep
//	go run ./examples/runstep -demo
//
// Package proc does the work. This is meant to be copied, as the frame around it
// in a runner of your own: main.go is the program, from
// flags to exit status; step.go is what is run; report.go is what is told of it.
//
// It exits with the status of the step: 128 and the number of a signal that has
// ended it. A step that exits with 0 when it was stopped makes 124 if it was a
// timeout, 128 and the number of the signal that runstep got, or 141 if nobody
// reads its output any more. 2 is for wrong arguments, 125 to 127 for a step that
// could not be run. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/foreground"
	"github.com/ambit-go/ambit/proc"
)

func main() {
	cfg := new(config)
	program := cli.Program{
		Name:     "runstep",
		Synopsis: "[flags] [-- command [argument...]]",
		About: `Runstep runs a command, or a script with bash, as a step of a pipeline: in a
process group of its own. When the step takes too long, or on INT, TERM or HUP,
the whole group gets TERM, and what is left of it after the grace gets KILL. A
second signal ends the grace. Without a command and without -f it reads the
script from its standard input. The step itself reads the null device.`,
		Exit: `that of the step (128 and the number of the signal that has
ended it); when it was stopped and exits with 0: 124 after a timeout, 128 and
the number of the signal that has stopped it, 141 if nobody reads its output; 2
wrong arguments; 125 could not be run, 126 is not executable, 127 is not there`,
		Flags: cfg.flags,
		Run:   cfg.run,
	}
	program.Main()
}

// A config is what the flags say.
type config struct {
	timeout, grace, linger    time.Duration
	file, dir, name, reportTo string
	demo                      bool
}

func (cfg *config) flags(flags *flag.FlagSet) {
	flags.DurationVar(&cfg.timeout, "timeout", 0, "stop the step after this `time`; 0 for never")
	flags.DurationVar(&cfg.grace, "grace", proc.DefaultGrace, "the `time` between TERM and KILL")
	flags.DurationVar(&cfg.linger, "linger", proc.DefaultLinger, "how long what the step has left behind may go on: a `time`")
	flags.StringVar(&cfg.file, "f", "", "run the script in this `file`, with the arguments that follow the flags")
	flags.StringVar(&cfg.dir, "C", "", "run the step in this `directory`")
	flags.StringVar(&cfg.name, "name", "", "what messages call the step: a `name`")
	flags.StringVar(&cfg.reportTo, "report", "", "write how the step has ended to this `file`, as JSON")
	flags.BoolVar(&cfg.demo, "demo", false, "run a built-in step that is stopped and leaves something behind")
}

// check refuses what makes no sense.
func (cfg *config) check() error {
	for name, d := range map[string]time.Duration{"timeout": cfg.timeout, "grace": cfg.grace, "linger": cfg.linger} {
		if d < 0 {
			return cli.Usagef("-%s %v: a time must not be negative", name, d)
		}
	}
	if cfg.grace == 0 {
		cfg.grace = -1 // none, where proc takes 0 for its default
	}
	if cfg.linger == 0 {
		cfg.linger = -1
	}
	return nil
}

// run runs the step and tells how it has ended.
func (cfg *config) run(ctx context.Context, args []string, std cli.Streams) error {
	if err := cfg.check(); err != nil {
		return err
	}
	c, err := cfg.command(args, std)
	if err != nil {
		return err
	}
	if err := checkReport(cfg.reportTo); err != nil {
		return err
	}
	cli.FailWritesToClosedPipes()
	begin := time.Now()
	var result proc.Result
	err = async.Scope(ctx, func(ctx context.Context) error {
		c.Signalling = func(sig syscall.Signal, cause error) {
			fmt.Fprintf(std.Err, "runstep: %s: %s: %s\n", c.Name, proc.SignalName(sig), because(cause))
		}
		step := foreground.StopOnSignals(ctx, &c)
		err := openable(ctx, c.ExtraFiles)
		if err != nil {
			return err
		}
		result, err = proc.Run(step, c, async.Timeout(cfg.timeout))
		return err
	}, async.Name("runstep"))
	for _, note := range result.Notes() {
		fmt.Fprintf(std.Err, "runstep: %s: note: %s\n", c.Name, note)
	}
	r := newReport(c.Name, result, err, time.Since(begin))
	if failed := r.write(cfg.reportTo); failed != nil {
		if err = errors.Join(err, failed); r.Status == cli.StatusDone {
			r.Status = foreground.StatusCannot
		}
	}
	if err != nil {
		err = &cli.ExitError{Code: r.Status, Err: err}
	}
	return err
}
