//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/report"
	"github.com/ambit-go/ambit/cirunner/internal/runner"
	"github.com/ambit-go/ambit/cirunner/internal/view"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
)

// defaultFile is what is run if nothing is named.
const defaultFile = ".gitlab-ci.yml"

// run runs a pipeline file.
func run(ctx context.Context, o *options, args []string, std cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := load(args)
	if err != nil {
		return err
	}
	manual, err := o.manual.among(p)
	if err != nil {
		return err
	}
	s := &session{o: o, p: p, std: std, manual: manual, begin: time.Now()}
	return async.Scope(ctx, func(ctx context.Context) error {
		// A reader of the output that goes away is an error of a write, not the
		// end of the process, which would leave the jobs behind.
		cli.OnSignal(ctx, func(os.Signal) error { return nil }, syscall.SIGPIPE)
		err := s.run(ctx)
		return errors.Join(s.tell(err), s.left)
	}, async.Name("cirunner"))
}

// load reads and checks the file.
func load(args []string) (*pipeline.Pipeline, error) {
	file := defaultFile
	switch len(args) {
	case 0:
	case 1:
		file = args[0]
	default:
		return nil, cli.Usagef("one file at a time, not %d", len(args))
	}
	p, err := pipeline.ParseFile(file)
	var found *pipeline.Errors
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(args) == 0:
		return nil, cli.Usagef("there is no %s here; name a file, such as cirunner/demo.yml", file)
	case errors.As(err, &found):
		return nil, &cli.ExitError{Code: report.StatusUsage, Err: fmt.Errorf("this is no pipeline:\n%s", found.Detail())}
	case err != nil:
		return nil, &cli.ExitError{Code: report.StatusUsage, Err: err}
	}
	return p, nil
}

// among returns the manual jobs that were asked for.
func (n names) among(p *pipeline.Pipeline) (map[string]bool, error) {
	asked := map[string]bool{}
	for _, name := range n {
		found := false
		for _, j := range p.Jobs {
			found = found || j.When == pipeline.Manual && (j.Name == name || j.Key == name)
		}
		if !found {
			return nil, cli.Usagef("-manual %s: there is no manual job of that name", name)
		}
		asked[name] = true
	}
	return asked, nil
}

// A session is one run, with all that is around it.
type session struct {
	o      *options
	p      *pipeline.Pipeline
	work   *workdir.Run
	std    cli.Streams
	manual map[string]bool
	begin  time.Time
	screen *view.Screen // nil without a terminal

	stop stopper
	jobs []board.Job // what became of them
	logs string
	left error // why something could not be tidied up
}

// run runs the pipeline, and tidies up. As long as that takes signals are heard:
// none of them leaves the directory of the run as that of one that was killed.
func (s *session) run(ctx context.Context) error {
	var failed error
	_ = async.Scope(ctx, func(ctx context.Context) error { // fails by the second signal, which stop knows of
		s.stop.listen(ctx)
		work, stale, err := workdir.Open(s.o.dir)
		if err != nil {
			failed = err
			return nil
		}
		s.work = work
		failed = s.pipeline(ctx, stale)
		s.stop.end()
		s.left = s.leave(ctx)
		return nil
	}, async.Name("run"))
	return failed
}

// pipeline runs the pipeline.
func (s *session) pipeline(ctx context.Context, stale []workdir.Stale) error {
	s.logs = s.o.logs
	if s.logs == "" {
		s.logs = s.work.Path("logs")
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return err
	}
	watch := s.watcher(func(err error) { s.stop.outputFailed(err) })
	r := runner.New(runner.Config{
		Pipeline: s.p, Work: s.work, Watch: watch, Manual: s.manual,
		Concurrent: s.o.jobs, FailFast: s.o.failFast, KeepWork: s.o.keepWork, Logs: s.logs, LogLimit: s.o.logLimit,
		Timeout: s.o.timeout, After: s.o.after, Grace: s.o.grace,
	})
	around := ctx // its scope lasts longer than that of the run
	err := r.Run(ctx, func(ctx context.Context) {
		s.stop.begin(around, r)
		s.tellStale(r.Board, stale)
		if s.screen != nil {
			async.Go(ctx, func(ctx context.Context) error { return s.screen.Show(ctx, r.Board) }, async.Daemon(), async.Name("screen"))
		}
	})
	s.jobs = r.Board.Jobs()
	return err
}

// watcher returns who is told what happens.
func (s *session) watcher(failed func(error)) board.Watcher {
	file, ok := s.std.Out.(*os.File)
	if s.o.view == "lines" || !ok || !view.CanDraw(file) {
		return &view.Lines{W: s.std.Out, Failed: failed}
	}
	s.screen = view.NewScreen(file, failed)
	s.screen.Frame = s.o.frame
	return s.screen
}

// tellStale tells what earlier runs have left, and tidies up what may be.
func (s *session) tellStale(b *board.Board, stale []workdir.Stale) {
	for _, old := range stale {
		b.Notice(fmt.Sprintf("run %d (process %s) was killed; its logs stay in %s", old.ID, old.PID, old.Dir))
		for _, g := range old.Groups {
			if s.o.killStale {
				b.Notice(fmt.Sprintf("run %d: process group %d of %q still ran: killed", old.ID, g.ID, g.Job))
				continue
			}
			b.Notice(fmt.Sprintf("run %d: process group %d of %q still runs: kill -- -%d, or use -kill-stale", old.ID, g.ID, g.Job, g.ID))
		}
		if s.o.killStale {
			old.Kill()
		}
		if err := old.Clear(); err != nil {
			b.Notice(fmt.Sprintf("run %d: %v", old.ID, err))
		}
	}
}

// leave gives the work directory back.
func (s *session) leave(ctx context.Context) error {
	err := s.work.Close(s.o.keepWork)
	if err == nil {
		err = s.work.Prune(context.WithoutCancel(ctx), s.o.keepRuns)
	}
	if err != nil {
		return &cli.ExitError{Code: report.StatusRunner, Err: fmt.Errorf("cannot tidy up: %w", err)}
	}
	return nil
}

// tell reports on the run. failed is what has failed the run itself.
func (s *session) tell(failed error) error {
	took := time.Since(s.begin)
	if s.jobs == nil {
		return verdict(nil, s.stop.why(), failed)
	}
	var errs []error
	if s.o.junit != "" {
		if err := report.WriteJUnit(s.o.junit, filepath.Base(s.p.File), s.jobs, took); err != nil {
			errs = append(errs, &cli.ExitError{Code: report.StatusRunner, Err: fmt.Errorf("cannot write the JUnit file: %w", err)})
		}
	}
	out := &cli.Out{W: s.std.Out}
	out.Printf("\n%s\n%s; logs in %s\n", report.Table(s.jobs), report.Summary(s.jobs, took), s.logs)
	if err := out.Err(); err != nil && s.stop.why() == nil {
		errs = append(errs, &cli.ExitError{Code: report.StatusRunner, Err: err})
	}
	return errors.Join(append([]error{verdict(s.jobs, s.stop.why(), failed)}, errs...)...)
}

// verdict is the error that says what has happened: who stopped the run, if that
// kept jobs from ending; else what was wrong with the run; else with jobs.
func verdict(jobs []board.Job, stopped, failed error) error {
	if stopped != nil && (report.Left(jobs) || !isSignal(stopped)) {
		if isSignal(stopped) {
			return stopped
		}
		return &cli.ExitError{Code: report.StatusRunner, Err: stopped}
	}
	if failed != nil && !isSignal(failed) {
		return &cli.ExitError{Code: report.StatusRunner, Err: failed}
	}
	switch code := report.Status(jobs); code {
	case report.StatusOK:
		return nil
	case report.StatusFailed:
		return &cli.ExitError{Code: code, Err: errors.New("jobs failed")}
	default:
		return &cli.ExitError{Code: code, Err: errors.New("jobs could not be run as they should")}
	}
}
