// Report runs every program that measures, and writes docs/performance.md and docs/scalability.md, with their pictures. make bench
// builds the programs and runs it at the top of the repository.
//
//	report                  # everything: with servers, where they are installed
//	report -quick           # async, scheduler, jobqueue, in less than two minutes
//	report -only 'B1|S3'    # prints these, and writes no page
//	report -from FILE       # writes the pages from what an earlier run has kept in out/bench.records
//	report -from FILE -only T.+  # the same, but these are measured anew
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// config is what the flags say.
type config struct {
	only  *regexp.Regexp // nil: all
	quick bool
	docs  string
	keep  string
	bin   string // where the other programs are
}

func main() {
	only := flag.String("only", "", "measure what has a number that matches this `expression`, and print it")
	quick := flag.Bool("quick", false, "fewer and shorter turns, and no servers")
	from := flag.String("from", "", "measure nothing: the `file` that an earlier run has kept")
	docs := flag.String("docs", "docs", "the `folder` of the pages")
	keep := flag.String("keep", filepath.Join("out", "bench.records"), "the `file` in which records are kept")
	flag.Parse()
	self, err := os.Executable()
	must(err)
	cfg := config{quick: *quick, docs: *docs, keep: *keep, bin: filepath.Dir(self)}
	if *only != "" {
		if cfg.only, err = regexp.Compile("^(" + *only + ")$"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := report(ctx, cfg, *from); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(ctx context.Context, cfg config, from string) error {
	var all results
	if from != "" {
		if err := all.read(from); err != nil {
			return err
		}
	}
	var err error
	switch {
	case cfg.only != nil && from == "":
		return measureAll(ctx, cfg, all.show)
	case cfg.only != nil || from == "":
		all.forget(cfg.only)
		if err = all.measure(ctx, cfg); len(all.ran) == 0 || ctx.Err() != nil || err != nil && cfg.only != nil {
			return err
		}
	}
	return errors.Join(err, all.write(cfg.docs)) // with what the programs have measured that did not fail
}

// results are what all programs have measured.
type results struct {
	rows   []measure.Row
	curves []measure.Curve
	queues []measure.Queue
	ran    []measure.Ran
}

func (all *results) add(r measure.Record) {
	switch {
	case r.Row != nil:
		all.rows = append(all.rows, *r.Row)
	case r.Curve != nil:
		all.curves = append(all.curves, *r.Curve)
	case r.Queue != nil:
		all.queues = append(all.queues, *r.Queue)
	case r.Ran != nil:
		all.ran = append(all.ran, *r.Ran)
	}
}

// read reads what an earlier run has kept.
func (all *results) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return measure.Read(f, all.add, func(string) {})
}

// forget leaves out what is measured anew, and that a program has failed or was not there.
func (all *results) forget(only *regexp.Regexp) {
	if only == nil {
		return
	}
	all.rows = slices.DeleteFunc(all.rows, func(r measure.Row) bool { return only.MatchString(r.ID) })
	all.curves = slices.DeleteFunc(all.curves, func(c measure.Curve) bool { return only.MatchString(c.ID) })
	all.queues = slices.DeleteFunc(all.queues, func(q measure.Queue) bool { return only.MatchString(q.ID) })
	all.ran = slices.DeleteFunc(all.ran, func(ran measure.Ran) bool { return ran.Missing != "" && runsAll(ran.Program, only) })
}

// records are the results, as they are kept.
func (all *results) records() (list []measure.Record) {
	for i := range all.rows {
		list = append(list, measure.Record{Row: &all.rows[i]})
	}
	for i := range all.curves {
		list = append(list, measure.Record{Curve: &all.curves[i]})
	}
	for i := range all.queues {
		list = append(list, measure.Record{Queue: &all.queues[i]})
	}
	for i := range all.ran {
		list = append(list, measure.Record{Ran: &all.ran[i]})
	}
	return list
}

// measure runs all programs, shows what they measure and keeps it, with what was read.
func (all *results) measure(ctx context.Context, cfg config) error {
	if err := os.MkdirAll(filepath.Dir(cfg.keep), 0o777); err != nil {
		return err
	}
	kept, err := os.Create(cfg.keep + ".new") // an earlier one stays until this is whole
	if err != nil {
		return err
	}
	var failed error
	before := len(all.ran)
	for _, r := range all.records() {
		failed = cmp.Or(failed, measure.Write(kept, r))
	}
	err = measureAll(ctx, cfg, func(r measure.Record) {
		if r.Row != nil && cfg.only != nil && !cfg.only.MatchString(r.Row.ID) {
			return // a test tells of more than was chosen
		}
		all.add(r)
		all.show(r)
		failed = cmp.Or(failed, measure.Write(kept, r))
	})
	for _, ran := range all.ran[before:] {
		if cfg.only != nil && ran.Missing != "" {
			err = errors.Join(err, fmt.Errorf("%s: not measured: %s: the rows that were kept stay", ran.Program, ran.Missing))
		}
	}
	if failed = cmp.Or(failed, kept.Close()); failed == nil && ctx.Err() == nil && (err == nil || cfg.only == nil) {
		failed = os.Rename(cfg.keep+".new", cfg.keep)
	}
	return errors.Join(err, failed)
}

// show prints a record for people.
func (all *results) show(r measure.Record) {
	switch {
	case r.Row != nil:
		r.Row.Print(os.Stdout)
	case r.Curve != nil:
		showCurve(os.Stdout, *r.Curve)
	case r.Queue != nil:
		fmt.Println(kingmanLine(*r.Queue))
	case r.Ran != nil && r.Ran.Missing != "":
		fmt.Printf("%s: not measured: %s\n", r.Ran.Program, r.Ran.Missing)
	}
}

// write writes both pages.
func (all *results) write(docs string) error {
	for _, page := range []struct {
		name string
		make func(docs string) (string, error)
	}{{"performance.md", all.performance}, {"scalability.md", all.scalability}} {
		text, err := page.make(docs)
		if err == nil {
			err = os.WriteFile(filepath.Join(docs, page.name), []byte(text), 0o666)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", page.name, err)
		}
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
