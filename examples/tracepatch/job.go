//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/proc"
)

// A job is a script, and a second one that is run after it.
type job struct {
	script, after string
	grace         time.Duration
	log           *journal

	state string // how it has ended, as the server is told
	code  int
}

// afterLimit is how long the after-script may take.
const afterLimit = 5 * time.Minute

// run runs the script, and then the after-script, however the script has ended:
// only an abort stops it, or keeps it from being started. It cannot make the job
// fail.
func (j *job) run(s *stop) error {
	err := j.step(s.soft, "script", j.script)
	if err != nil && context.Cause(s.soft) != nil {
		j.log.notef("%v", context.Cause(s.soft))
	}
	if s.hard.Err() != nil {
		j.log.notef("aborted: the after-script is not run")
		return err
	}
	if j.after == "" {
		return err
	}
	j.log.notef("after-script")
	if err := j.step(s.hard, "after-script", j.after, async.Timeout(afterLimit)); err != nil {
		j.log.notef("%v", err)
	}
	return err
}

// step runs one script of the job, with the log as its output.
func (j *job) step(ctx context.Context, name, script string, opts ...async.TaskOption) error {
	result, err := proc.Run(ctx, proc.Command{
		Args:   []string{"bash", "-c", script},
		Name:   name,
		Stdout: j.log,
		Stderr: j.log,
		Grace:  j.grace,
	}, opts...)
	for _, note := range result.Notes() {
		j.log.notef("%s: %s", name, note)
	}
	if name == "script" {
		j.note(ctx, result, err)
	}
	return err
}

// note notes how the script has ended.
func (j *job) note(ctx context.Context, result proc.Result, err error) {
	j.code = result.Status()
	switch {
	case err == nil:
		j.state = "success"
	case result.Cause != nil || result.Pid == 0 && ctx.Err() != nil:
		j.state = "canceled"
	default:
		j.state = "failed"
	}
}

// failed gives the error of a job that has failed, or was stopped, its exit
// status.
func (j *job) failed(err error) error {
	var exit *proc.ExitError
	if j.state == "failed" && errors.As(err, &exit) {
		return &cli.ExitError{Code: cli.StatusFailed, Err: fmt.Errorf("the job has failed: %w", err)}
	}
	return err
}
