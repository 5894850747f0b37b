//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/engine"
	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/lint"
	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/report"
	"github.com/ambit-go/ambit/cirunner/internal/runner"
	"github.com/ambit-go/ambit/cirunner/internal/view"
	"github.com/ambit-go/ambit/cirunner/internal/workdir"
	"github.com/ambit-go/ambit/service"
)

// defaultFile is what is run if nothing is named.
const defaultFile = ".gitlab-ci.yml"

// run runs a pipeline file.
func run(ctx context.Context, o *options, args []string, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.load(ctx, args, out)
	if err != nil {
		return err
	}
	p, manual, err := o.chosen(p)
	switch {
	case err != nil:
		return err
	case o.choice.dryRun:
		return lint.DryRun(p, manual, o.choice.masking(out))
	}
	e, err := o.choice.containers.engine(ctx, p)
	if err != nil {
		return err
	}
	s := &session{o: o, p: p, out: out, manual: manual, engine: e, begin: time.Now()}
	return s.run(ctx)
}

// among returns the manual jobs that were asked for. One of a pipeline that a job makes is not known yet.
func (n names) among(p *pipeline.Pipeline) (map[string]bool, error) {
	asked := map[string]bool{}
	for _, name := range n {
		if !p.HasManual(name) && !p.MayGet(name) {
			return nil, exit.Usagef("-manual %s: there is no manual job of that name", name)
		}
		asked[name] = true
	}
	return asked, nil
}

// unmet says which names of flags have turned out to be those of nothing, when the pipelines have been made that might
// have had it.
func (s *session) unmet() (errs []error) {
	for _, name := range s.o.manual {
		if s.p.MayGet(name) && !s.p.HasManual(name) {
			errs = append(errs, fmt.Errorf("-manual %s: no pipeline that was made has a manual job of that name", name))
		}
	}
	for _, name := range s.o.choice.masked {
		if !s.o.choice.knows(s.p, name) {
			errs = append(errs, fmt.Errorf("-mask %s: no job has a variable of that name, nor has one of a pipeline that was made", name))
		}
	}
	return errs
}

// A session is one run, with all that is around it.
type session struct {
	o      *options
	p      *pipeline.Pipeline
	out    io.Writer
	manual map[string]bool
	engine *engine.Engine // nil if no job needs one
	begin  time.Time
	took   time.Duration // set when it has ended

	work   *workdir.Run
	logs   string
	runner *runner.Runner
	screen *view.Screen            // nil without a terminal
	stop   context.CancelCauseFunc // of the run, as the first signal does

	drained error       // the signal that has drained the run; owned by follow while that runs
	jobs    []board.Job // what became of them; nil if the run has not begun
}

// run runs the pipeline, tidies up, and tells what has become of it.
func (s *session) run(ctx context.Context) error {
	heard, deaf := hear()
	defer deaf()
	defer func() { _ = s.o.choice.server.Close() }() // child pipelines have been read since
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	work, stale, err := workdir.Open(s.o.dir)
	if err != nil {
		return err
	}
	_ = workdir.Adopt() // without it only a process that has cleared its environment gets away
	s.work = work
	failed := s.pipeline(ctx, heard, stale)
	stopped := context.Cause(ctx)
	if stopped == nil {
		stopped = s.drained
	}
	s.took = time.Since(s.begin)
	reported := s.report(stopped) // of logs that another run may remove when this one has left
	left := s.leave(ctx)
	return errors.Join(s.tell(stopped, failed), reported, left)
}

// pipeline runs the pipeline, as a service: the first signal is its Drain, the second
// ends its context. Scripts and after_scripts have limits of their own. Services are
// stopped in reverse order, so what shows the run outlasts it.
func (s *session) pipeline(ctx context.Context, heard <-chan os.Signal, stale []workdir.Stale) error {
	if err := s.prepare(); err != nil {
		return err
	}
	services := []service.Service{
		{Name: "signals", Run: func(ctx context.Context) error { return s.follow(ctx, heard) }},
		{
			Name:    "pipeline",
			Startup: time.Minute, // until it can be stopped, which is at once
			Run: func(ctx context.Context) error {
				defer context.AfterFunc(ctx, func() { s.runner.Board.SetStatus("aborting: everything is killed") })()
				return s.runner.Run(ctx, func(context.Context) {
					service.Ready(ctx) // who reads the output may be slow
					s.tellStale(ctx, s.runner.Board, stale)
				})
			},
			Drain: func(drain context.Context) error {
				s.runner.Board.SetStatus("stopping; Ctrl-C again aborts")
				s.runner.Cancel(drain, context.Cause(ctx))
				return nil
			},
		},
	}
	if s.screen != nil {
		show := func(ctx context.Context) error { return s.screen.Show(ctx, s.runner.Board) }
		services = append([]service.Service{{Name: "screen", Run: show}}, services...)
	}
	err := service.Run(ctx, services, service.Grace(service.Forever), service.GiveUp(time.Minute))
	s.jobs = s.runner.Board.Jobs()
	return err
}

// prepare makes the runner, and who is told what happens.
func (s *session) prepare() error {
	s.logs = s.o.logs
	if s.logs == "" {
		s.logs = s.work.Path("logs")
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return err
	}
	if err := s.recordEngine(); err != nil {
		return err
	}
	s.runner = runner.New(runner.Config{
		Engine: s.engine, FindEngine: s.findEngine,
		Pipeline: s.p, Work: s.work, Watch: s.watcher(), Manual: s.manual, Variables: s.o.choice.run.Variables,
		Mask: s.o.choice.masked, Secrets: s.o.choice.secrets(), Caches: s.o.choice.caches,
		Concurrent: s.o.jobs, FailFast: s.o.failFast, KeepWork: s.o.keepWork, Logs: s.logs, LogLimit: s.o.logLimit,
		Timeout: s.o.timeout, After: s.o.after, Grace: s.o.grace,
	})
	return nil
}

// watcher returns who is told what happens. An output that fails stops the run; it
// is told so where a line is written, and so must not wait for anybody who writes.
func (s *session) watcher() board.Watcher {
	failed := func(err error) { s.stop(&brokenOutput{err}) }
	file, ok := s.out.(*os.File)
	if s.o.view == "lines" || !ok || !view.CanDraw(file) {
		return &view.Lines{W: s.out, Failed: failed}
	}
	s.screen = view.NewScreen(file, failed)
	s.screen.Frame = s.o.frame
	return s.screen
}

// tellStale tells what earlier runs have left, and tidies up what may be.
func (s *session) tellStale(ctx context.Context, b *board.Board, stale []workdir.Stale) {
	for _, old := range stale {
		b.Notice(howItEnded(old))
		for _, g := range old.Groups {
			if s.o.killStale {
				b.Notice(fmt.Sprintf("run %d: process group %d of %q still ran: killed", old.ID, g.ID, g.Job))
				continue
			}
			b.Notice(fmt.Sprintf("run %d: process group %d of %q still runs: kill -- -%d, or use -kill-stale", old.ID, g.ID, g.Job, g.ID))
		}
		swept := sweepStale(ctx, b, old)
		if s.o.killStale {
			old.Kill()
		}
		if !swept {
			continue // the next run finds the containers by what this one leaves there
		}
		if err := old.Clear(); err != nil {
			b.Notice(fmt.Sprintf("run %d: %v", old.ID, err))
		}
	}
}

func howItEnded(old workdir.Stale) string {
	if old.Ended {
		return fmt.Sprintf("run %d could not remove its containers; its logs stay in %s", old.ID, old.Dir)
	}
	return fmt.Sprintf("run %d (process %s) was killed; its logs stay in %s", old.ID, old.PID, old.Dir)
}

// leave gives the work directory back. It stays as it is if there are containers left.
func (s *session) leave(ctx context.Context) error {
	if err := s.sweep(ctx); err != nil {
		return errors.Join(fmt.Errorf("cannot tidy up, the next run tries again: %w", err), s.work.CloseUnswept())
	}
	if err := s.work.Close(s.o.keepWork); err != nil {
		return fmt.Errorf("cannot tidy up: %w", err)
	}
	if err := s.work.Prune(context.WithoutCancel(ctx), s.o.keepRuns); err != nil {
		_, _ = fmt.Fprintf(s.o.choice.masking(s.out), "== cannot remove what earlier runs have left: %v\n", err)
	}
	return nil
}

// report writes the reports that were asked for. stopped is why the run was stopped.
func (s *session) report(stopped error) error {
	if s.jobs == nil {
		return nil
	}
	var errs []error
	if s.o.junit != "" {
		if err := report.WriteJUnit(s.o.junit, filepath.Base(s.p.File), s.jobs, s.took); err != nil {
			errs = append(errs, fmt.Errorf("cannot write the JUnit file: %w", err))
		}
	}
	if s.o.report != "" {
		if err := report.WriteHTML(s.o.report, s.page(stopped)); err != nil {
			errs = append(errs, fmt.Errorf("cannot write the report: %w", err))
		}
	}
	return errors.Join(errs...)
}

// tell sums the run up. stopped is why it was stopped, failed what has failed
// the run itself.
func (s *session) tell(stopped, failed error) error {
	if s.jobs == nil {
		return verdict(nil, stopped, failed)
	}
	errs := []error{verdict(s.jobs, stopped, failed)}
	if stopped == nil {
		errs = append(errs, s.unmet()...)
	}
	err := s.sumUp(fmt.Sprintf("%s; logs in %s", report.Summary(s.jobs, s.took), s.logs))
	if err != nil && stopped == nil {
		errs = append(errs, &brokenOutput{err})
	}
	return errors.Join(errs...)
}

// page is what the HTML report is about.
func (s *session) page(stopped error) report.Page {
	p := report.Page{
		Name: mask.Text(cmp.Or(s.p.Name, filepath.Base(s.p.File)), s.o.choice.secrets()), Begin: s.begin, Took: s.took,
		Stages: s.p.Stages, Jobs: s.jobs, Logs: s.logs, Facts: facts(s.o.choice.run.Variables),
	}
	for i := range p.Facts {
		p.Facts[i].Text = mask.Text(p.Facts[i].Text, s.o.choice.secrets())
	}
	if stopped != nil && (report.Left(s.jobs) || !isSignal(stopped)) {
		p.Stopped = mask.Text(stopped.Error(), s.o.choice.secrets())
	}
	return p
}

// sumUp prints the table and a summary: on a terminal one that fits, below what the
// failed jobs have said last.
func (s *session) sumUp(summary string) error {
	if s.screen != nil {
		return s.screen.Final(s.runner.Board, summary)
	}
	_, err := fmt.Fprintf(s.out, "\n%s\n%s\n", report.Table(s.jobs), summary)
	return err
}

// verdict is the error that says what has happened: who stopped the run, if that
// kept jobs from ending; else what was wrong with the run; else with jobs.
func verdict(jobs []board.Job, stopped, failed error) error {
	switch {
	case stopped != nil && (report.Left(jobs) || !isSignal(stopped)):
		return stopped
	case failed != nil && !isSignal(failed):
		return failed
	}
	return report.Failure(jobs)
}
