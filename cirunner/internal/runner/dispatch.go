//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/jobqueue"
)

// Which jobs may run is the plan's affair; those that are ready stand in a queue of
// package jobqueue, from which as many workers take as jobs may run at once. An
// async.Limit would not do here: it lends out the slot of a task that waits, and a job
// does little else.

// A turn is an attempt at a job that is to be made. No two turns are the same, so
// none is rejected but those that the queue has.
type turn struct{ job, attempt int }

// newTurns returns a queue in which a turn that is in progress can be queued again: as a delayed job becomes due its
// resource_group may be taken, and be given back before that turn has ended.
func newTurns() *jobqueue.Queue[turn, turn] {
	return jobqueue.New[turn](jobqueue.WhileRunning(jobqueue.RunAgain))
}

// begin makes the plan and shows what it says. No job is started yet.
func (r *Runner) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var changes []plan.Change
	r.hideSecrets(r.Pipeline.Jobs)
	r.plan, changes = plan.New(r.planned(r.Pipeline.Jobs))
	r.applyLocked(changes)
}

// planned are jobs in the words of package plan.
func (r *Runner) planned(all []*pipeline.Job) []plan.Job {
	jobs := make([]plan.Job, len(all))
	for i, j := range all {
		jobs[i] = plan.Job{
			Name: j.Name, Stage: j.StageIndex, HasNeeds: j.Needs != nil,
			When: j.When, Asked: r.Manual[j.Name] || r.Manual[j.Key],
			AllowFailure: j.AllowFailure, Retry: j.Retry, Group: r.groupOf(j),
		}
		jobs[i].Depend = j.Depend
		if j.Parent != nil {
			jobs[i].Parent = j.Parent.Index + 1
		}
		for _, n := range j.Needs {
			jobs[i].Needs = append(jobs[i].Needs, n.Job.Index)
		}
	}
	return jobs
}

// work runs jobs until none is left.
func (r *Runner) work(ctx context.Context) error {
	return r.turns.Consume(ctx, r.Concurrent, 1, func(ctx context.Context, turns []turn) error {
		if a := r.start(turns[0].job); a != nil {
			r.end(a, a.run(ctx))
		}
		return nil // a job that has failed is the plan's to try again
	})
}

// start begins an attempt, unless the run was stopped meanwhile: then it returns nil.
func (r *Runner) start(i int) *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.soft.Err() != nil {
		return nil
	}
	r.applyLocked(r.plan.Due(i)) // if it was delayed; its turn is taken, and not queued again
	number, ok := r.plan.Take(i)
	if !ok {
		return nil
	}
	r.Board.Change(i, func(j *board.Job) {
		j.State, j.Attempt, j.Begin, j.End = plan.Running, number, time.Now(), time.Time{}
		j.Phase, j.Cause, j.Why, j.Last = "preparing", "", "", ""
		j.Coverage, j.Tests = "", nil
	})
	a := &attempt{r: r, i: i, job: r.Pipeline.Jobs[i], number: number}
	a.quit, a.giveUp = context.WithCancelCause(r.soft)
	if a.job.Interruptible {
		r.givers[i] = a.giveUp
	}
	return a
}

// end says how an attempt has ended, and queues what may run now.
func (r *Runner) end(a *attempt, outcome plan.Outcome) {
	a.giveUp(nil)
	r.Board.Change(a.i, func(j *board.Job) { j.End, j.Phase = time.Now(), "" })
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.givers, a.i)
	if why := r.stopped(); why != "" { // before jobs are skipped that waited for this one
		r.applyLocked(r.plan.Stop(why))
	}
	changes := r.endedLocked(a.i, outcome)
	r.giveBackLocked(a, outcome) // before another job may have the group
	r.applyLocked(changes)
}

// stopped says why the run was stopped; empty as long as nobody has. Whoever has may not have come to halt it yet.
func (r *Runner) stopped() string {
	var canceled *Stop
	switch hard := context.Cause(r.hard); {
	case errors.As(context.Cause(r.soft), &canceled):
		return canceled.Error()
	case hard != nil:
		return "aborted: " + aborted(hard)
	}
	return ""
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

// giveUpLocked stops the jobs that are not worth it any more, and keeps others from
// being started.
func (r *Runner) giveUpLocked(failed string) []plan.Change {
	why := fmt.Errorf("given up: %q failed", failed)
	for _, fail := range r.givers {
		fail(&Stop{why})
	}
	return r.plan.GiveUp(why.Error())
}

// applyLocked puts changes on the board, and does what follows from them.
func (r *Runner) applyLocked(changes []plan.Change) {
	failed := ""
	for _, c := range changes {
		r.Board.Change(c.Job, func(j *board.Job) {
			if j.State == plan.Locked && (c.State == plan.Failed || c.State == plan.Warned) {
				j.Cause = pipeline.SystemFailure // it would wait for ever
			}
			j.State, j.Why = c.State, c.Why
		})
		next := turn{c.Job, r.plan.Attempts(c.Job) + 1}
		switch {
		case c.State == plan.Ready:
			r.turns.Add(next)
		case c.State == plan.Delayed:
			r.turns.AddAfter(r.Pipeline.Jobs[c.Job].StartIn, next)
		case c.State == plan.Failed && r.FailFast:
			failed = r.Pipeline.Jobs[c.Job].Name
		}
	}
	if failed != "" {
		r.applyLocked(r.giveUpLocked(failed))
	}
	if r.plan.Done() || r.plan.Stopped() {
		r.turns.Close() // no job becomes ready any more
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
