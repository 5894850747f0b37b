//go:build unix

package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A childError is that a child pipeline could not be started.
type childError struct{ err error }

func (e *childError) Error() string { return e.err.Error() }

// Unwrap returns why.
func (e *childError) Unwrap() error { return e.err }

// startPipeline reads the child pipeline whose files other jobs have made, and adds its jobs to the run. They start
// when this attempt has succeeded.
func (a *attempt) startPipeline() error {
	if a.job.Made == nil {
		return nil
	}
	a.phase("child pipeline")
	var contents [][]byte
	for _, f := range a.job.Made.Files {
		data, err := a.r.Work.Artifact(slug(f.From), f.Path, pipeline.MaxSize)
		if err != nil {
			return &childError{fmt.Errorf("the artifact %s of %q: %w", f.Path, f.From.Name, err)}
		}
		contents = append(contents, data)
	}
	a.r.children.Lock()
	defer a.r.children.Unlock()
	if a.r.grown[a.i] {
		return nil // by an attempt that has failed after that
	}
	child, err := a.job.Made.Read(a.job, contents)
	if err != nil {
		faults := strings.Split(err.Error(), "\n")
		for _, fault := range faults[1:] {
			a.note("cirunner: %s", fault)
		}
		if n := len(faults) - 1; n > 0 {
			err = fmt.Errorf("%s: %s, which the log has", faults[0], count(n, "fault"))
		}
		return &childError{err}
	}
	for _, w := range child.Warnings {
		a.note("cirunner: %s", w)
	}
	if err := a.r.grow(a.work, a.job, child); err != nil {
		return &childError{a.because(err)} // the engine may have been looked for when the run was stopped
	}
	a.r.grown[a.i] = true
	a.note("cirunner: the child pipeline has %s", count(len(child.Jobs), "job"))
	return nil
}

// grow adds the jobs of a child pipeline to the run.
func (r *Runner) grow(ctx context.Context, parent *pipeline.Job, child *pipeline.Pipeline) error {
	if r.Engine == nil && r.FindEngine != nil {
		e, err := r.FindEngine(ctx, child)
		if err != nil {
			return err
		}
		r.Engine = e // jobs with an image are there only from now on
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.Pipeline.Grow(parent, child); err != nil {
		return err
	}
	r.Board.Add(shown(child.Jobs))
	r.hideSecrets(child.Jobs)
	r.applyLocked(r.plan.Add(r.planned(child.Jobs)))
	return nil
}
