// Report runs every program that measures, and writes docs/performance.md and docs/scalability.md, with their pictures. make bench
// builds the programs and runs it at the top of the repository.
//
//	report                  # everything: with servers, where they are installed
//	report -quick           # async, scheduler, jobqueue, in less than two minutes
//	report -only 'B1|S3'    # prints these, and writes no page
//	report -from FILE       # writes the pages from what an earlier run has kept in out/bench.records
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
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
	var err error
	switch {
	case from != "":
		err = all.read(from)
	case cfg.only != nil:
		return measureAll(ctx, cfg, all.show)
	default:
		err = all.measure(ctx, cfg)
	}
	if err != nil {
		return err
	}
	return all.write(cfg.docs)
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

// measure runs all programs, shows what they measure and keeps it.
func (all *results) measure(ctx context.Context, cfg config) error {
	if err := os.MkdirAll(filepath.Dir(cfg.keep), 0o777); err != nil {
		return err
	}
	kept, err := os.Create(cfg.keep)
	if err != nil {
		return err
	}
	var failed error
	err = measureAll(ctx, cfg, func(r measure.Record) {
		all.add(r)
		all.show(r)
		failed = cmp.Or(failed, measure.Write(kept, r))
	})
	return cmp.Or(err, failed, kept.Close())
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
