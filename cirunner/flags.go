//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/exit"
)

// options are what the flags say.
type options struct {
	jobs      int
	dir       string
	manual    names
	failFast  bool
	junit     string
	report    string
	logs      string
	logLimit  int64
	timeout   time.Duration
	after     time.Duration
	grace     time.Duration
	keepWork  bool
	keepRuns  int
	killStale bool
	view      string
	choice    choice // of the jobs that run

	frame func(lines []string, jobs []board.Job) // told each frame of the tree; for tests
}

func (o *options) define(flags *flag.FlagSet) {
	o.choice.define(flags)
	flags.IntVar(&o.jobs, "j", runtime.NumCPU(), "how many `jobs` run at once")
	flags.StringVar(&o.dir, "C", ".", "the `directory` of the project, and of its .gitlab-ci.yml; where the default has none, the root of the repository")
	flags.Var(&o.manual, "manual", "run the manual job of this `name`, too; may be repeated")
	flags.BoolVar(&o.failFast, "fail-fast", false, "once a job has failed, start no other but those for after a failure, and give up running jobs that are interruptible")
	flags.StringVar(&o.junit, "junit", "", "write a JUnit `file`")
	flags.StringVar(&o.report, "report", "", "write an HTML `file`: the jobs on a time line, causes, logs")
	flags.StringVar(&o.logs, "logs", "", "the `directory` of the logs (default .cirunner/RUN/logs)")
	flags.Int64Var(&o.logLimit, "log-limit", 0, "keep and print at most so many `bytes` of a job's output; 0 for all")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "the timeout of jobs that have none")
	flags.DurationVar(&o.after, "after-timeout", 5*time.Minute, "the timeout of each after_script")
	flags.DurationVar(&o.grace, "grace", 10*time.Second, "the time between TERM and KILL, of jobs that say nothing of it")
	flags.BoolVar(&o.keepWork, "keep", false, "keep the work directories of the jobs")
	flags.IntVar(&o.keepRuns, "keep-runs", 10, "keep logs and artifacts of so many `runs`")
	flags.BoolVar(&o.killStale, "kill-stale", false, "kill what runs that were killed have left running")
	flags.StringVar(&o.view, "view", "auto", "`how` to show the run: lines, or auto: a tree on a terminal, else lines")
}

// check returns what is wrong with the flags.
func (o *options) check() error {
	switch {
	case o.jobs < 1:
		return exit.Usagef("-j %d: at least 1 job has to run", o.jobs)
	case o.logLimit < 0:
		return exit.Usagef("-log-limit %d: a limit is at least 1, and 0 is none", o.logLimit)
	case o.timeout <= 0 || o.after <= 0 || o.grace < 0:
		return exit.Usagef("-timeout and -after-timeout must be positive, -grace at least 0")
	case o.keepRuns < 1:
		return exit.Usagef("-keep-runs %d: at least this run is kept", o.keepRuns)
	case o.view != "auto" && o.view != "lines":
		return exit.Usagef("-view %s: it is auto or lines", o.view)
	}
	for name, path := range map[string]string{"-junit": o.junit, "-report": o.report} {
		if info, err := os.Stat(filepath.Dir(path)); path != "" && (err != nil || !info.IsDir()) {
			return exit.Usagef("%s %s: there is no directory %s", name, path, filepath.Dir(path)) // better now than after the run
		}
	}
	o.grace = max(o.grace, 1) // 0 is the default of package proc
	return o.choice.check()
}

// names is a flag that may be repeated.
type names []string

func (n *names) String() string { return strings.Join(*n, ", ") }

// Set adds a name.
func (n *names) Set(s string) error {
	if s == "" {
		return fmt.Errorf("a name is needed")
	}
	*n = append(*n, s)
	return nil
}
