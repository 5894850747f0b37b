//go:build unix

package runner

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// Jobs with one resource_group run one at a time. Within a run the plan sees to
// that, and no worker waits for it; runs of one project lock a file.

// groupOf returns the resource_group of a job, with its variables replaced.
func (r *Runner) groupOf(j *pipeline.Job) string {
	a := &attempt{r: r, i: j.Index, job: j}
	if a.job.ResourceGroup == "" {
		return ""
	}
	resolved, err := a.resolve(a.job.Variables, nil)
	if err != nil {
		return a.job.ResourceGroup // the script will say so
	}
	group, err := vars.Expand(a.job.ResourceGroup, resolved)
	if err != nil {
		return a.job.ResourceGroup
	}
	return group
}

// takeResource waits until no other run has the resource_group of the job, and keeps it
// until the attempt has ended.
func (a *attempt) takeResource(ctx context.Context) error {
	group := a.r.groupOf(a.job)
	if group == "" || a.r.inherits(a.job, group) {
		return nil
	}
	a.phase("resource_group " + group)
	said := false
	held, err := async.Poll(ctx, async.Backoff(10*time.Millisecond, 500*time.Millisecond),
		func(context.Context) (io.Closer, bool, error) {
			held, err := a.r.Work.TryResource(group)
			if held == nil && err == nil && !said {
				said = true
				a.note("cirunner: another run of the project has the resource_group %s: waiting until it gives that back", group)
			}
			return held, held != nil, err
		}).Wait(context.WithoutCancel(ctx)) // it ends with ctx, and what it has got is not lost
	if err != nil {
		return a.because(fmt.Errorf("cannot have the resource_group %s: %w", group, err))
	}
	a.held = held
	return nil
}

// inherits reports whether the run has a group for the pipeline that a job is in.
func (r *Runner) inherits(j *pipeline.Job, group string) bool {
	for parent := j.Parent; parent != nil; parent = parent.Parent {
		if parent.Depend && r.groupOf(parent) == group {
			return true
		}
	}
	return false
}

// giveBackLocked gives back the group of an attempt that has ended, and those of pipelines that are over by that. A
// trigger job with strategy: depend has its group until its pipeline is over.
func (r *Runner) giveBackLocked(a *attempt, o plan.Outcome) {
	switch {
	case a.held == nil:
	case a.job.Depend && o.OK():
		r.held[a.i] = a.held
	default:
		_ = a.held.Close()
	}
	for i, held := range r.held {
		if r.plan.Over(i) {
			_ = held.Close()
			delete(r.held, i)
		}
	}
}

// giveAllBack gives back the groups that are left when the run is over.
func (r *Runner) giveAllBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, held := range r.held {
		_ = held.Close()
	}
}
