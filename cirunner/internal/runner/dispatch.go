//go:build unix

package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// There is no goroutine that hands out jobs: whoever ends one starts what may
// run then, in the scope of the run. A Limit would not do here: it lends out the
// slot of a task that waits, and a job does little else.

// begin makes the plan and shows what it says. No job is started yet.
func (r *Runner) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []plan.Change
	r.plan, changes = plan.New(r.planned())
	r.applyLocked(changes)
}

// planned is the pipeline in the words of package plan.
func (r *Runner) planned() []plan.Job {
	jobs := make([]plan.Job, len(r.Pipeline.Jobs))
	for i, j := range r.Pipeline.Jobs {
		jobs[i] = plan.Job{
			Name: j.Name, Stage: j.StageIndex, HasNeeds: j.Needs != nil,
			When: j.When, Asked: r.Manual[j.Name] || r.Manual[j.Key],
			AllowFailure: j.AllowFailure, Retry: j.Retry,
		}
		for _, n := range j.Needs {
			jobs[i].Needs = append(jobs[i].Needs, n.Job.Index)
		}
	}
	return jobs
}

// advance takes a step of the plan and starts what may run after it.
func (r *Runner) advance(step func() []plan.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyLocked(step())
	for r.running < r.Concurrent && r.soft.Err() == nil {
		i, attempt, ok := r.plan.Take()
		if !ok {
			return
		}
		r.startLocked(i, attempt)
	}
}

// startLocked starts an attempt, as a task of the run.
func (r *Runner) startLocked(i, number int) {
	r.running++
	r.Board.Change(i, func(j *board.Job) {
		j.State, j.Attempt, j.Begin, j.End = plan.Running, number, time.Now(), time.Time{}
		j.Phase, j.Cause, j.Why, j.Last = "preparing", "", "", ""
	})
	quit, giveUp := context.WithCancelCause(r.soft)
	if r.Pipeline.Jobs[i].Interruptible {
		r.givers[i] = giveUp
	}
	a := &attempt{r: r, i: i, job: r.Pipeline.Jobs[i], number: number, quit: quit}
	async.Go(r.hard, func(ctx context.Context) error {
		defer giveUp(nil)
		outcome := a.run(ctx)
		r.Board.Change(i, func(j *board.Job) { j.End, j.Phase = time.Now(), "" })
		r.advance(func() []plan.Change {
			r.running--
			delete(r.givers, i)
			return r.endedLocked(i, outcome)
		})
		return nil
	}, async.Name(a.job.Name))
}

// endedLocked tells the plan how an attempt has ended.
func (r *Runner) endedLocked(i int, o plan.Outcome) []plan.Change {
	changes := r.plan.Ended(i, o)
	r.Board.Change(i, func(j *board.Job) { j.Cause = o.Cause })
	return changes
}

// halt lets no more jobs start.
func (r *Runner) halt(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applyLocked(r.plan.Stop(why))
}

// delay has a job come due later, if the run is not stopped before.
func (r *Runner) delay(i int) {
	job := r.Pipeline.Jobs[i]
	async.Go(r.hard, func(context.Context) error {
		if async.Sleep(r.soft, job.StartIn) == nil {
			r.advance(func() []plan.Change { return r.plan.Due(i) })
		}
		return nil
	}, async.Name("delay of "+job.Name))
}

// giveUpLocked stops the jobs that are not worth it any more.
func (r *Runner) giveUpLocked(failed string) {
	for _, fail := range r.givers {
		fail(&Stop{fmt.Errorf("given up: %q failed", failed)})
	}
}

// applyLocked puts changes on the board, and does what follows from them.
func (r *Runner) applyLocked(changes []plan.Change) {
	for _, c := range changes {
		r.Board.Change(c.Job, func(j *board.Job) { j.State, j.Why = c.State, c.Why })
		switch {
		case c.State == plan.Delayed:
			r.delay(c.Job)
		case c.State == plan.Failed && r.FailFast:
			r.giveUpLocked(r.Pipeline.Jobs[c.Job].Name)
		}
	}
}

// wants reports whether a job's artifacts are kept after such an outcome.
func wants(j *pipeline.Job, o plan.Outcome) bool {
	if len(j.Artifacts.Paths) == 0 && !j.Artifacts.Untracked || o.Cause == plan.Stopped {
		return false
	}
	switch j.Artifacts.When {
	case pipeline.Always:
		return true
	case pipeline.OnFailure:
		return !o.OK()
	}
	return o.OK()
}
