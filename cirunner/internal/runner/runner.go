//go:build unix

// Package runner runs a pipeline: it starts jobs as the plan allows, looks after
// each, and stops them in two stages.
//
// One scope owns everything. In it are two contexts: the hard one is that of the
// scope, and what it ends is killed at once; the soft one is a child of it, and
// what it ends gets TERM and time. Scripts run under the soft context. The scripts that come after one,
// after_script first of all, run under the hard one: a run that
// is cancelled tidies up, a run that is aborted does not.
//
// runner.go is the run and its stops, dispatch.go which job runs next, attempt.go
// one attempt at a job, service.go its services, watch.go its watchdogs,
// process.go its shells, script.go what these are given, environ.go with what
// variables, outcome.go what comes of it.
package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
	"github.com/ambit-go/ambit/jobqueue"
)

// A Config is what is to be run, and how.
type Config struct {
	Pipeline *pipeline.Pipeline
	Work     *workdir.Run
	Watch    board.Watcher // may be nil
	// Variables are the predefined variables of the run; without any they are those
	// of the branch that is checked out.
	Variables map[string]string
	Mask      []string        // variables whose values are not to be seen
	Secrets   []string        // values that are not to be seen, whatever job has them
	Caches    string          // the directory of caches; empty if jobs have none
	Manual    map[string]bool // manual jobs that are to run: a name, or the key of a parallel job

	Engine *engine.Engine // of jobs with an image; nil if all jobs run on this machine

	// FindEngine returns the engine for a child pipeline that is read during the run, where Engine is nil. It may be nil,
	// and then there is none.
	FindEngine func(ctx context.Context, child *pipeline.Pipeline) (*engine.Engine, error)

	Concurrent int           // jobs at once, at least 1
	FailFast   bool          // give up interruptible jobs once one has failed
	KeepWork   bool          // leave the work directories
	Logs       string        // the directory of the logs
	LogLimit   int64         // bytes of output kept per attempt, 0 for all
	Timeout    time.Duration // of jobs that say nothing of it
	After      time.Duration // of an after_script
	Grace      time.Duration // between TERM and KILL, of jobs that say nothing of it

	// OpenLog opens the file of a log. Defaults to appending to the file.
	OpenLog func(path string) (io.WriteCloser, error)
}

// A Runner runs a pipeline once. Goroutines may share it.
type Runner struct {
	Config
	Board *board.Board

	hard context.Context // set before the first job starts
	soft context.Context
	stop context.CancelCauseFunc // of soft
	base map[string]string       // variables that are the same for all jobs; set before them

	turns *jobqueue.Queue[turn, turn] // of jobs that are ready; closed when none will be

	children sync.Mutex   // held while a child pipeline is read; taken without mu
	grown    map[int]bool // the jobs that have started one; guarded by children

	cutOff  atomic.Bool  // the engine may start a container yet, though its client was ended
	unswept atomic.Int64 // attempts that may have left something in the engine

	mu     sync.Mutex // also held while the board is told, so that it is told in order
	plan   *plan.Plan
	givers map[int]context.CancelCauseFunc // of running jobs that are interruptible
	ports  map[string]*semaphore.Weighted  // of services, by address
	dotenv map[int]map[string]string       // variables that jobs have reported
	held   map[int]io.Closer               // the resource groups of trigger jobs with strategy: depend, whose pipelines are not over
}

// New returns a runner that has not started anything.
func New(c Config) *Runner {
	if c.OpenLog == nil {
		c.OpenLog = func(path string) (io.WriteCloser, error) {
			return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		}
	}
	r := &Runner{Config: c, turns: newTurns(), givers: map[int]context.CancelCauseFunc{}, ports: map[string]*semaphore.Weighted{}, grown: map[int]bool{}, held: map[int]io.Closer{}, dotenv: map[int]map[string]string{}}
	r.Board = board.New(shown(c.Pipeline.Jobs), c.Watch, c.Secrets...)
	return r
}

// shown is what of jobs is on the board before any runs.
func shown(all []*pipeline.Job) []board.Job {
	jobs := make([]board.Job, len(all))
	for i, j := range all {
		jobs[i] = board.Job{Name: j.Name, Stage: j.Stage}
		if j.Parent != nil {
			jobs[i].Parent = j.Parent.Name
		}
		for _, n := range j.Needs {
			jobs[i].Needs = append(jobs[i].Needs, n.Job.Name)
		}
	}
	return jobs
}

// A Stop is why jobs are stopped that have done nothing wrong.
type Stop struct{ Why error }

// Error returns the text of the reason.
func (s *Stop) Error() string { return s.Why.Error() }

// Unwrap returns Why.
func (s *Stop) Unwrap() error { return s.Why }

// Run runs the pipeline. It returns when every job has come to its end and
// nothing that was started is left, also if ctx ends: that aborts the run.
// control is called when the run can be stopped, with the context of its scope:
// whatever fails that scope aborts the run. Run's error is about the run itself,
// not about jobs that failed; what became of those is on the Board.
func (r *Runner) Run(ctx context.Context, control func(ctx context.Context)) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		r.hard = ctx
		r.soft, r.stop = context.WithCancelCause(ctx)
		r.base = r.commonVariables(r.soft)
		r.begin()
		async.OnExit(ctx, func(_ context.Context, outcome error) error {
			r.stop(nil)
			r.giveAllBack()
			r.halt(fmt.Sprintf("aborted: %v", outcome)) // nothing is left to halt if all is well
			return nil
		})
		async.Go(ctx, r.Work.Bury, async.Daemon(), async.Name("bury"))
		control(ctx)
		return r.prepare(r.soft)
	}, async.Name("pipeline"))
}

// prepare makes the copy that jobs are given, and runs them. If
// it is cancelled the jobs are as well, and that is all there is to say.
func (r *Runner) prepare(ctx context.Context) error {
	notes, err := r.Work.Snapshot(ctx)
	if err == nil {
		err = r.snapshotModules(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(r.hard)
	}
	if err != nil {
		r.halt("the project could not be copied")
		return &PrepareError{err}
	}
	for _, n := range notes {
		r.Board.Notice(n)
	}
	return r.work(r.hard)
}

// A PrepareError is that no job could be started.
type PrepareError struct{ Err error }

// Error says what could not be prepared, and why.
func (e *PrepareError) Error() string { return "cannot copy the project: " + e.Err.Error() }

// Unwrap returns Err.
func (e *PrepareError) Unwrap() error { return e.Err }

// Cancel stops the run: scripts are stopped, after_scripts run, no job starts.
// It does not block, whoever is slow to take the run's output. Only the first
// call has an effect. To abort the run, end the context of Run.
func (r *Runner) Cancel(ctx context.Context, why error) {
	r.stop(&Stop{why})
	r.later(ctx, why.Error())
}

// Unswept reports whether a job has, or may have, left something in the engine that could not be removed.
func (r *Runner) Unswept() bool { return r.unswept.Load() > 0 || r.CutOff() }

// CutOff reports whether a start of a container was cut off, whose engine may come to it when the run is over.
func (r *Runner) CutOff() bool { return r.cutOff.Load() }

// Drain lets no job start from now on. Jobs that run go on.
func (r *Runner) Drain(ctx context.Context, why string) { r.later(ctx, why) }

func (r *Runner) later(ctx context.Context, why string) {
	async.Go(ctx, func(context.Context) error { r.halt(why); return nil }, async.Name("halt"))
}
