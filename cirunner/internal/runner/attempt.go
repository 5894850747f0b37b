//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/joblog"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// An attempt is one run of one job.
type attempt struct {
	r      *Runner
	i      int
	job    *pipeline.Job
	number int

	// quit ends with the soft context, and when the job is given up.
	quit   context.Context
	giveUp context.CancelCauseFunc

	// work is what the script and all before it runs under: it ends with quit,
	// with the scope of the attempt, and by fail, when a service fails.
	work context.Context
	fail context.CancelCauseFunc

	place   place // set when the work directory is there
	dir     string
	secrets []string          // values that are hidden in what is said of the job
	modules []workdir.Module  // submodules that the job has
	given   map[string]string // variables that other jobs have reported; set by prepare
	keys    []string          // of the job's caches; set by prepare
	had     []string          // files that git did not track when the script began, if that is asked for
	log     *joblog.Log
	held    io.Closer // the resource_group; nil without
}

// run runs the attempt. When it returns nothing of it is left but what is to
// stay: its log and its artifacts.
func (a *attempt) run(ctx context.Context) plan.Outcome {
	if err := a.forget(); err != nil {
		return a.outcome(ctx, fmt.Errorf("cannot remove the artifacts of the attempt before: %w", err))
	}
	path := a.path("log")
	file, err := a.openLog(path)
	if err != nil {
		return a.outcome(ctx, fmt.Errorf("cannot open the log: %w", err))
	}
	a.log = joblog.New(file, a.r.LogLimit, a.say(""))
	a.r.Board.Change(a.i, func(j *board.Job) { j.Log = path })
	if a.number > 1 {
		a.note("cirunner: attempt %d", a.number)
	}

	var o plan.Outcome
	// Services are daemons of this scope: they are stopped when its body has
	// returned, that is after after_script.
	err = async.Scope(ctx, func(ctx context.Context) error {
		a.work, a.fail = context.WithCancelCause(ctx)
		defer a.fail(nil)
		defer context.AfterFunc(a.quit, func() { a.fail(context.Cause(a.quit)) })()
		began, err := a.main(ctx)
		o = a.outcome(ctx, err)
		if began {
			a.after(ctx, o)
			a.place.settle(ctx)
			a.keepCaches(ctx, o)
			a.readReports()
		}
		o = a.keep(ctx, o)
		return nil
	}, async.Name("job "+a.job.Name), async.HookTimeout(time.Minute))
	a.reap(ctx)
	return a.close(ctx, o, err)
}

// forget removes what an earlier attempt has left for other jobs: artifacts and variables.
func (a *attempt) forget() error {
	a.r.mu.Lock()
	delete(a.r.dotenv, a.i)
	a.r.mu.Unlock()
	return workdir.RemoveAll(a.r.Work.Path("artifacts", a.slug()))
}

// reap ends what the job has left running outside of its process groups.
func (a *attempt) reap(ctx context.Context) {
	if n := a.r.Work.Reap(ctx, a.slug(), a.grace()); n > 0 {
		a.note("cirunner: it left %s behind, in sessions of their own, which were ended", count(n, "process"))
	}
}

// main prepares the job and runs its script. began reports whether that has come
// as far as the script.
func (a *attempt) main(ctx context.Context) (began bool, err error) {
	a.findSecrets()
	if err := a.takeResource(a.work); err != nil {
		return false, err
	}
	if err := a.prepare(); err != nil {
		return false, err
	}
	a.place = a.newPlace()
	if err := a.place.open(ctx); err != nil {
		return false, a.because(err)
	}
	if a.work.Err() != nil {
		return false, context.Cause(a.work)
	}
	if err := a.script(); err != nil {
		return true, err
	}
	return true, a.startPipeline()
}

// because adds why the work was stopped, if it was: not everything that was
// stopped says so itself.
func (a *attempt) because(err error) error {
	if a.work.Err() != nil {
		return errors.Join(context.Cause(a.work), err)
	}
	return err
}

// prepare makes the work directory, with the artifacts of earlier jobs.
func (a *attempt) prepare() (err error) {
	if a.dir, err = a.r.Work.Checkout(a.work, a.slug()); err != nil {
		return a.because(fmt.Errorf("cannot make the work directory: %w", err))
	}
	if err := a.writeFiles(); err != nil {
		return a.because(fmt.Errorf("cannot write the files of variables: %w", err))
	}
	if err := a.takeModules(); err != nil {
		return a.because(err)
	}
	a.takeVariables()
	a.findSecrets()
	a.takeCaches()
	for _, from := range a.job.Fetch {
		n, err := a.r.Work.Restore(a.work, slug(from), a.slug())
		if err != nil {
			return a.because(fmt.Errorf("cannot fetch the artifacts of %q: %w", from.Name, err))
		}
		if n > 0 {
			a.note("cirunner: %s from %q", count(n, "artifact"), from.Name)
		}
	}
	a.tellShortSecrets()
	if a.job.Artifacts.Untracked {
		if a.had, err = a.untracked(a.work); err != nil {
			return a.because(fmt.Errorf("cannot see which files are untracked: %w", err))
		}
	}
	return a.because(a.log.Err())
}

// keep keeps the artifacts. To be cancelled does not cut it short, to be aborted
// does.
func (a *attempt) keep(ctx context.Context, o plan.Outcome) plan.Outcome {
	if !wants(a.job, o) {
		return o
	}
	a.phase("artifacts")
	n, missing, err := a.collect(ctx)
	for _, m := range missing {
		a.note("cirunner: artifacts: nothing in the job's directory matches %s", m)
	}
	switch {
	case err == nil:
		a.note("cirunner: %s kept", count(n, "artifact"))
	case o.OK():
		return a.outcome(ctx, fmt.Errorf("cannot keep the artifacts: %w", err))
	default:
		a.note("cirunner: cannot keep the artifacts: %v", err)
	}
	return o
}

func (a *attempt) collect(ctx context.Context) (files int, missing []string, err error) {
	paths, err := a.expandAll(a.job.Artifacts.Paths)
	if err != nil {
		return 0, nil, err
	}
	if a.job.Artifacts.Untracked {
		made, err := a.madeUntracked(ctx)
		if err != nil {
			return 0, nil, err
		}
		paths = append(paths, made...)
	}
	exclude, err := a.expandAll(a.job.Artifacts.Exclude)
	if err != nil {
		return 0, nil, err
	}
	return a.r.Work.Collect(ctx, a.slug(), paths, exclude)
}

// close says how it ended, closes the log and removes the work directory. A log
// that is not complete fails a job that has succeeded otherwise. err is of the
// attempt's scope: that services could not be stopped, or that the run was
// aborted.
func (a *attempt) close(ctx context.Context, o plan.Outcome, err error) plan.Outcome {
	if ctx.Err() != nil {
		o = a.outcome(ctx, errors.Join(context.Cause(ctx), err))
	} else if err != nil && o.OK() {
		o = a.outcome(ctx, err)
	}
	o.Text = a.hide(o.Text)
	if o.OK() {
		a.note("cirunner: job succeeded")
	} else {
		a.note("cirunner: %s: %s", o.Cause, o.Text)
		if missing := a.job.Missing; len(missing) > 0 {
			a.note("cirunner: the scripts need %s, which only a server issues: give it with -variables or -var", strings.Join(missing, ", "))
		}
	}
	if err := a.log.Close(); err != nil && o.OK() {
		o = a.outcome(ctx, fmt.Errorf("the log is not complete: %w", err))
	}
	a.removeFiles()
	if a.dir != "" && !a.r.KeepWork {
		if err := workdir.RemoveAll(a.dir); err != nil {
			a.r.Board.Notice(fmt.Sprintf("%s: cannot remove the work directory: %v", a.job.Name, err))
		}
	}
	return o
}

// openLog opens a log. A job's attempts write to one, one below the other.
func (a *attempt) openLog(path string) (io.WriteCloser, error) {
	if a.number == 1 {
		_ = os.Truncate(path, 0) // of another run, if the directory was named by a flag
	}
	return a.r.OpenLog(path)
}

func (a *attempt) phase(name string) {
	a.r.Board.Change(a.i, func(j *board.Job) { j.Phase = name })
}

// say returns what a log does with lines.
func (a *attempt) say(source string) func([]byte, joblog.Kind) {
	return func(line []byte, kind joblog.Kind) {
		if source == "" && kind != joblog.Own {
			a.lookForCoverage(line)
		}
		a.r.Board.Line(a.i, board.Line{Source: source, Own: kind == joblog.Own, Hidden: kind == joblog.Beyond}, line)
	}
}

// path returns a path among the logs.
func (a *attempt) path(suffix string) string {
	return a.r.Logs + string(os.PathSeparator) + a.slug() + "." + suffix
}

func (a *attempt) slug() string { return slug(a.job) }

// slugOf is a name for files of a text.
func slugOf(text string) string { return slug(&pipeline.Job{Name: text})[len("001-"):] }

// slug is a name for files: the job's number keeps it unique, whatever else is
// left of its name.
func slug(j *pipeline.Job) string {
	keep := func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.':
			return c
		}
		return '-'
	}
	name := strings.Trim(strings.Map(keep, j.Name), "-.")
	return fmt.Sprintf("%03d-%.40s", j.Index+1, name)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
