//go:build unix

package main

import (
	"context"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/proc"
)

// afterLimit is how long an after-script may take.
const afterLimit = 5 * time.Minute

// script runs the script of a job under its limits. A cancel sends TERM, and KILL after the grace; an abort
// ends the grace. The process group is gone when it returns.
func (r *runner) script(soft, hard context.Context, j *job, dir string, log *jobLog) error {
	var limits []async.TaskOption
	if j.timeout > 0 {
		limits = append(limits, async.Timeout(j.timeout))
	}
	if j.silent > 0 {
		limits = append(limits, async.Heartbeat(j.silent))
	}
	return r.shell(soft, hard, j.script, dir, log, limits...)
}

// after runs the after-script. Only an abort stops it.
func (r *runner) after(hard context.Context, j *job, dir string, log *jobLog) error {
	return r.shell(hard, hard, j.after, dir, log, async.Timeout(afterLimit))
}

// shell runs a script in a process group of its own, as a task, which the limits can abort.
func (r *runner) shell(ctx, hard context.Context, script, dir string, log *jobLog, limits ...async.TaskOption) error {
	_, err := async.Execute(ctx, func(ctx context.Context) (struct{}, error) {
		out := beating{log, ctx}
		result, err := proc.Run(ctx, proc.Command{
			Name:   "script",
			Args:   []string{"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script},
			Dir:    dir,
			Stdout: out,
			Stderr: out, // one writer: the order is that in which it wrote
			Grace:  r.grace,
			Hurry:  hard,
		})
		for _, note := range result.Notes() {
			log.note("%s", note)
		}
		return struct{}{}, err
	}, append(limits, async.Name("script"))...).Join(ctx)
	return err
}

// A beating writer tells the watchdog of the script that it gets on.
type beating struct {
	io.Writer
	ctx context.Context
}

func (b beating) Write(p []byte) (int, error) {
	async.Beat(b.ctx)
	return b.Writer.Write(p)
}
