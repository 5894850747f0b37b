//go:build unix

// Cleanup runs a job and removes what that has made, however the job ends: phase
// after phase, with an HTTP request for each resource, although the job has been
// cancelled. Every phase has time of its own, so one that hangs takes none from
// the others, and every resource that is left is told.
//
//	go run ./examples/cleanup -timeout 10m plan.txt make integration-test
//
// A plan is a list of phases, each with a name and, if it likes, its time, and
// under it what can be removed side by side:
//
//	phase containers 20s
//	http://127.0.0.1:8080/containers/web
//	http://127.0.0.1:8080/containers/db
//	phase volumes
//	http://127.0.0.1:8080/volumes/data
//
// main.go has the scope of the job and its exit hook; phases.go goes through the
// phases and removes what is in them; plan.go reads a plan.
//
// It exits as the job does: with its status, or 128 and the number of the signal that
// has ended it. If it was stopped: 124 if it took too long, 130 when interrupted, 143 when
// terminated and 141 if nobody reads its output any more. 125 to 127 is for a command
// that could not be run, and 125 also for one that is well when something could not be
// removed; 1 if nothing can be printed, and 2 when the arguments or the plan are wrong.
// (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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
	timeout, grace, budget, request time.Duration
	parallel                        int
}

func main() {
	var cfg config
	flag.DurationVar(&cfg.timeout, "timeout", 0, "stop the command after this `time`; 0 for no limit")
	flag.DurationVar(&cfg.grace, "grace", proc.DefaultGrace, "kill a command that is told to stop after this `time`")
	flag.DurationVar(&cfg.budget, "budget", 30*time.Second, "give this `time` to a phase that has none of its own")
	flag.DurationVar(&cfg.request, "request-timeout", 5*time.Second, "give up on a request after this `time`, and make another")
	flag.IntVar(&cfg.parallel, "parallel", 8, "make at most `n` requests at the same time")
	flag.Parse()
	service.Main(func(ctx context.Context) error {
		plan, err := cfg.plan(flag.Args())
		if err != nil {
			return &failure{err, 2}
		}
		return cfg.run(ctx, plan, flag.Args()[1:])
	})
}

// plan looks at the arguments and reads the plan.
func (cfg *config) plan(args []string) ([]phase, error) {
	switch {
	case cfg.budget <= 0 || cfg.grace <= 0 || cfg.request <= 0 || cfg.parallel < 1:
		return nil, errors.New("-budget, -grace, -request-timeout and -parallel must be more than 0")
	case cfg.timeout < 0:
		return nil, errors.New("-timeout must not be negative; 0 sets no limit")
	case len(args) < 2:
		return nil, errors.New("name a plan and a command, like plan.txt make test")
	}
	return readPlan(args[0], cfg.budget)
}

// A failure is an error with the exit status that it makes.
type failure struct {
	error
	status int
}

// ExitStatus is what package service asks for.
func (f *failure) ExitStatus() int { return f.status }

// run runs the job in a scope, and has the scope clean up when it ends. By then the job
// has ended, and so has the scope's context, with a signal, a timeout or whatever
// else as the cause. An exit hook has a context of its own.
func (cfg *config) run(ctx context.Context, plan []phase, args []string) error {
	// A write that nobody reads is an error from here on, or there would be no cleaning up.
	// To ignore the signal would have the command ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	clean := &cleaner{client: &http.Client{Transport: transport, Timeout: cfg.request, CheckRedirect: stay}, parallel: cfg.parallel, out: os.Stdout}
	var result proc.Result
	var job, left error
	_ = async.Scope(ctx, func(ctx context.Context) error { // what went wrong is in job and left
		async.OnExit(ctx, func(ctx context.Context, outcome error) error {
			if job == nil {
				job = outcome
			}
			clean.printf("job: %s\n", ending(job))
			left = clean.cleanUp(ctx, plan)
			return nil
		})
		result, job = proc.Run(ctx, cfg.command(args, service.Hurry(ctx)), async.Timeout(cfg.timeout))
		return job
	}, async.Name("job"), async.HookTimeout(total(plan)))
	err := errors.Join(job, left, clean.lost)
	if err == nil {
		return nil
	}
	return &failure{err, status(result, job, left, clean.lost)}
}

// command makes the command. Our output is no file to it: what it leaves running would hold that open.
func (cfg *config) command(args []string, hurry context.Context) proc.Command {
	return proc.Command{Args: args, Grace: cfg.grace, Hurry: hurry, GiveUp: patience,
		Stdout: struct{ io.Writer }{os.Stdout}, Stderr: struct{ io.Writer }{os.Stderr}}
}

// patience is how long a reader of the output may stand still, as a pager does, when the command has
// ended: the rest would else be lost, and the command fail. A process that cannot be killed is
// waited for as long.
const patience = 24 * time.Hour

// ending says how the job has ended.
func ending(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// total is more than the time that all phases have together.
func total(plan []phase) time.Duration {
	d := time.Minute
	for _, p := range plan {
		d += p.budget
	}
	return d
}

// status returns the exit status: why the job was stopped, or its own; or that of what has
// failed after it.
func status(r proc.Result, job, left, lost error) int {
	var sig *service.SignalError
	switch {
	case errors.As(job, &sig):
		return sig.ExitStatus()
	case errors.As(job, new(*async.TimeoutError)):
		return 124
	case errors.Is(job, syscall.EPIPE), job == nil && left == nil && errors.Is(lost, syscall.EPIPE):
		return 128 + int(syscall.SIGPIPE)
	case r.Status() > 0:
		return r.Status()
	case r.Pid == 0 && (errors.Is(job, exec.ErrNotFound) || errors.Is(job, fs.ErrNotExist)):
		return 127
	case r.Pid == 0 && errors.Is(job, fs.ErrPermission):
		return 126
	case job != nil, left != nil:
		return 125
	}
	return 1
}

// printf prints, and keeps the first error: the cleaning up goes on without a reader.
func (c *cleaner) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(c.out, format, args...); err != nil && c.lost == nil {
		c.lost = fmt.Errorf("cannot write: %w", err)
	}
}
