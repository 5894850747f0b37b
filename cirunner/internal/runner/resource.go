//go:build unix

package runner

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
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
// until it is given back.
func (a *attempt) takeResource(ctx context.Context) (giveBack func(), err error) {
	group := a.r.groupOf(a.job)
	if group == "" {
		return func() {}, nil
	}
	a.phase("resource_group " + group)
	held, err := async.Poll(ctx, async.Backoff(10*time.Millisecond, 500*time.Millisecond),
		func(context.Context) (io.Closer, bool, error) {
			held, err := a.r.Work.TryResource(group)
			return held, held != nil, err
		}).Wait(context.WithoutCancel(ctx)) // it ends with ctx, and what it has got is not lost
	if err != nil {
		return func() {}, a.because(fmt.Errorf("cannot have the resource_group %s: %w", group, err))
	}
	return func() { _ = held.Close() }, nil
}
