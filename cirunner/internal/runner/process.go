//go:build unix

package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/proc"
)

// A timeLimit is the cause of what has taken too long.
type timeLimit struct {
	what  string
	limit time.Duration
}

func (e *timeLimit) Error() string { return fmt.Sprintf("%s took longer than %v", e.what, e.limit) }

// script runs before_script and script, in one shell.
func (a *attempt) script() error {
	a.phase("script")
	limit := a.job.Timeout
	if limit == 0 {
		limit = a.r.Timeout
	}
	ctx, cancel := context.WithTimeoutCause(a.work, limit, &timeLimit{"the script", limit})
	defer cancel()
	commands := append(a.job.Before[:len(a.job.Before):len(a.job.Before)], a.job.Script...)
	err := a.watched(ctx, func(ctx context.Context, beat func()) error {
		result, err := a.shell(ctx, shell{
			name: "script", text: scriptText(commands), variables: a.job.Variables,
			out: &beating{a.log, beat}, grace: a.grace(),
		})
		for _, note := range result.Notes() {
			a.note("cirunner: the script: %s", note)
		}
		return err
	})
	a.log.Flush()
	return err
}

// after runs after_script, in a shell of its own, which is told what has become
// of the job. How it ends changes nothing.
func (a *attempt) after(ctx context.Context, o plan.Outcome) {
	if len(a.job.After) == 0 || ctx.Err() != nil {
		return
	}
	a.phase("after_script")
	a.note("cirunner: after_script")
	status := map[bool]string{true: "success", false: "failed"}[o.OK()]
	if o.Cause == plan.Stopped {
		status = "canceled"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.r.After, &timeLimit{"after_script", a.r.After})
	defer cancel()
	_, err := a.shell(ctx, shell{
		name: "after_script", text: scriptText(a.job.After),
		variables: a.job.Variables, more: map[string]string{"CI_JOB_STATUS": status},
		out: a.log, grace: a.grace(),
	})
	a.log.Flush()
	if err != nil {
		a.note("cirunner: after_script, which does not count: %v", err)
	}
}

func (a *attempt) grace() time.Duration {
	if a.job.Watchdog.Grace >= 0 {
		return max(a.job.Watchdog.Grace, 1) // 0 is the default of package proc
	}
	return a.r.Grace
}

// A shell is a script that is run by a shell of its own.
type shell struct {
	name      string // of the file and in errors
	text      string
	variables []pipeline.Variable
	more      map[string]string // predefined ones
	out       io.Writer         // of stdout and stderr, which are one stream
	grace     time.Duration
}

// shell runs a script where the job runs: see place.
func (a *attempt) shell(ctx context.Context, s shell) (result proc.Result, err error) {
	environ, err := a.environ(s.variables, s.more)
	if err != nil {
		return proc.Result{}, err
	}
	out, flush := a.masked(s.out, environ)
	defer func() {
		if flushErr := flush(); err == nil && flushErr != nil {
			err = &proc.OutputError{Stream: "output", Err: flushErr}
		}
	}()
	return a.place.shell(ctx, s, environ, out)
}

func writeScript(path string, mode os.FileMode, text string) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return fmt.Errorf("cannot write the script: %w", err)
	}
	return nil
}

// beating is a writer that tells that something was written. It is used by its
// address: that is one writer for stdout and stderr, and so one pipe for both.
type beating struct {
	io.Writer
	beat func()
}

func (b *beating) Write(p []byte) (int, error) {
	b.beat()
	return b.Writer.Write(p)
}
