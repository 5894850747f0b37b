//go:build unix

// Runstep runs a command or a script as a CI runner runs a step: in a process
// group of its own, which is ended as a whole. A step that takes too long, that a
// watchdog gives up, or that a signal to runstep stops gets TERM, and what is left
// of its group after the grace gets KILL. Exit status, signal and cause are all told.
//
//	go run ./examples/runstep -- make test
//	go run ./examples/runstep -timeout 10m -grace 30s -f build.sh
//	go run ./examples/runstep -health http://localhost:8080/healthz -- ./server
//	go run ./examples/runstep -beat /tmp/alive -stale 30s -- ./job
//	echo 'echo hello; exit 3' | go run ./examples/runstep
//	go run ./examples/runstep -demo
//
// Package proc does the work. This is the frame around it in a runner of your own:
// main.go is the program, from flags to exit status; step.go is what is run;
// watch.go has the watchdogs.
//
// It exits with the status of the step: 128 and the number of a signal that has
// ended it. A step that exits with 0 when it was stopped makes 3 if a watchdog has
// given it up, 124 if it was a timeout, 128 and the number of the signal that runstep
// got, or 141 if nobody reads its output any more; with -cause these are the status
// of every step that was stopped. 2 is for wrong arguments, 125 to 127 for a step that
// could not be run. (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

// A config is what the flags say.
type config struct {
	timeout, grace, linger        time.Duration
	file, dir, name, health, beat string
	stale, every, answer          time.Duration
	tolerate                      int
	byCause, demo                 bool
}

func main() {
	var cfg config
	flag.DurationVar(&cfg.timeout, "timeout", 0, "stop the step after this `time`; 0 for never")
	flag.DurationVar(&cfg.grace, "grace", proc.DefaultGrace, "the `time` between TERM and KILL")
	flag.DurationVar(&cfg.linger, "linger", proc.DefaultLinger, "how long what the step has left behind may go on: a `time`")
	flag.StringVar(&cfg.file, "f", "", "run the script in this `file`, with the arguments that follow the flags")
	flag.StringVar(&cfg.dir, "C", "", "run the step in this `directory`")
	flag.StringVar(&cfg.name, "name", "", "what messages call the step: a `name`")
	flag.StringVar(&cfg.health, "health", "", "ask this `URL`, which has to answer with a status of 200 to 299")
	flag.StringVar(&cfg.beat, "beat", "", "look at the time of this `file`, which the step has to touch")
	flag.DurationVar(&cfg.stale, "stale", 30*time.Second, "how old that may be: a `time`")
	flag.DurationVar(&cfg.every, "every", time.Second, "the `time` between two looks")
	flag.DurationVar(&cfg.answer, "answer", time.Second, "the `time` that an answer may take")
	flag.IntVar(&cfg.tolerate, "tolerate", 2, "let `n` bad looks in a row pass")
	flag.BoolVar(&cfg.byCause, "cause", false, "if the step was stopped, exit with a status that says why")
	flag.BoolVar(&cfg.demo, "demo", false, "run a built-in step that is stopped and leaves something behind")
	flag.Parse()
	c, err := cfg.command(flag.Args()) // a signal while it reads the script ends it as ever
	service.Main(func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return cfg.run(ctx, c)
	})
}

// A failure is an error with the exit status that it makes.
type failure struct {
	error
	status int
}

// ExitStatus is what package service asks for.
func (f *failure) ExitStatus() int { return f.status }

func usage(format string, args ...any) error { return &failure{fmt.Errorf(format, args...), 2} }

// check refuses what a step could not be run or watched with.
func (cfg *config) check() error {
	switch {
	case min(cfg.timeout, cfg.grace, cfg.linger) < 0:
		return usage("-timeout, -grace and -linger must not be negative")
	case min(cfg.stale, cfg.every, cfg.answer) <= 0:
		return usage("-stale, -every and -answer must be more than 0")
	case cfg.tolerate < 0:
		return usage("-tolerate must not be negative")
	}
	return nil
}

// run runs the step and tells how it has ended.
func (cfg *config) run(ctx context.Context, c proc.Command) error {
	c.Hurry = service.Hurry(ctx) // the second signal ends the grace
	c.Signalling = func(sig syscall.Signal, cause error) {
		if cause == nil {
			cause = errors.New("it has left processes behind")
		}
		fmt.Fprintf(os.Stderr, "runstep: %s: %s: %v\n", c.Name, proc.SignalName(sig), cause)
	}
	// A write that nobody reads is an error from here on: the step is to be stopped then,
	// and not runstep alone. To ignore the signal would have the step ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	result, err := cfg.watched(stopOnHangup(ctx), c)
	for _, note := range result.Notes() {
		fmt.Fprintf(os.Stderr, "runstep: %s: note: %s\n", c.Name, note)
	}
	if err != nil {
		err = &failure{err, cfg.status(result, err)}
	}
	return err
}

// stopOnHangup returns a context that a HUP cancels, too. Package service takes INT
// and TERM; the step has to end with a terminal as well, unless nohup says otherwise.
func stopOnHangup(ctx context.Context) context.Context {
	if signal.Ignored(syscall.SIGHUP) {
		return ctx
	}
	ctx, stop := context.WithCancelCause(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	async.Go(ctx, func(ctx context.Context) error {
		select {
		case sig := <-hangup:
			stop(&service.SignalError{Signal: sig})
		case <-ctx.Done():
		}
		return nil
	}, async.Daemon(), async.Name("hangup"))
	return ctx
}

// The statuses of env(1) for a step that could not be run.
const cannot, notExecutable, missing = 125, 126, 127

// status returns the exit status for a step that has not ended well. Its own goes before
// everything, unless -cause says otherwise: that it was stopped does not mask it.
func (cfg *config) status(r proc.Result, err error) int {
	why, stopped := causeStatus(err)
	switch status := r.Status(); {
	case r.Pid == 0 && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)):
		return missing
	case r.Pid == 0 && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOEXEC)):
		return notExecutable
	case r.Pid == 0 && !stopped, r.Pid > 0 && status < 0: // or it cannot be killed
		return cannot
	case r.Pid == 0, cfg.byCause && r.Cause != nil, status == 0:
		return why
	default:
		return status
	}
}

// causeStatus returns the exit status that says why a step was stopped. A check that took
// too long is a timeout as well, so the watchdog is looked for first.
func causeStatus(err error) (status int, ok bool) {
	var sig *service.SignalError
	switch {
	case errors.As(err, new(*async.WatchdogError)):
		return 3, true
	case errors.As(err, &sig):
		return sig.ExitStatus(), true
	case errors.As(err, new(*async.TimeoutError)):
		return 124, true
	case errors.Is(err, syscall.EPIPE):
		return 128 + int(syscall.SIGPIPE), true
	}
	return 1, false
}
