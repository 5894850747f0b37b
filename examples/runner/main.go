//go:build unix

// Runner runs a plan of jobs, as a CI runner does, with package async: to make your own of.
//
//	go run ./examples/runner examples/runner/demo.plan
//	go run ./examples/runner -j 4 -out /tmp/run demo.plan
//
// A plan is a file of jobs. Lines that begin with a tab are the script, or the after-script:
//
//	job test
//	needs build
//	retry 1
//	timeout 10m
//	silent 1m
//	artifacts report.txt
//		make test | tee report.txt
//	after
//		make clean
//
// planfile.go reads it; plan.go decides which job may run; run.go starts jobs and has the two levels of a
// stop; job.go is the course of a job; script.go runs a script under its limits; log.go keeps
// what a job says; artifacts.go hands files from job to job.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/ambit-go/ambit/service"
)

const about = `usage: runner [flags] plan

Runner runs the jobs of a plan. The first SIGINT or SIGTERM cancels them: scripts get TERM, and KILL after the
grace, and the after-scripts run. The second one ends both at once.

Exit status: 0 all jobs have succeeded, 1 some have not, 2 wrong arguments or a wrong plan, 130 and 143 stopped.

`

func main() {
	r := &runner{stdout: os.Stdout}
	flag.IntVar(&r.parallel, "j", 2, "run up to `n` jobs at a time")
	flag.StringVar(&r.out, "out", "", "keep logs and artifacts in this `directory` instead of a new one")
	flag.DurationVar(&r.grace, "grace", 10*time.Second, "the `time` between TERM and KILL")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	jobs, err := load(flag.Args())
	if r.parallel < 1 {
		err = errors.New("-j must be 1 or more")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error { return r.run(ctx, newPlan(jobs)) })
}

// load reads the plan that the arguments name.
func load(args []string) ([]*job, error) {
	if len(args) != 1 {
		return nil, errors.New("name one plan; -h tells more")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(f)
}
