//go:build unix

// Cirunner runs a pipeline file in the dialect of GitLab CI on this machine, with
// bash: stages and needs, before_script and after_script, retries, timeouts,
// artifacts, and services.
//
//	go run ./cirunner cirunner/demo.yml
//	go run ./cirunner -j 4 -junit report.xml .gitlab-ci.yml
//	go run ./cirunner lint .gitlab-ci.yml
//
// A first interrupt cancels the run: scripts are stopped, after_scripts run. A
// second one aborts it: everything is killed. SIGQUIT drains it: jobs that run
// end, no other starts.
//
// It is meant to be copied. main.go is the command, flags.go its flags, run.go
// a run from file to exit status, stop.go its signals. Of the packages in
// internal, pipeline reads files, lint checks them, plan decides which jobs run, runner runs
// them, workdir has their directories and artifacts, joblog their logs, vars
// their variables; board is the live picture, view shows it, report sums it up.
//
// It exits with 0 if all was well, 1 if jobs failed, 2 if the arguments or the
// file are wrong, 3 if the runner or a service failed, 129, 130, 131 or 143 if it
// was stopped by SIGHUP, SIGINT, SIGQUIT or SIGTERM before all jobs had ended.
// (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"

	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/lint"
)

func main() { newProgram().Main() }

// newProgram returns the program, with flags at their defaults.
func newProgram() *cli.Program {
	var o options
	return &cli.Program{
		Name:     "cirunner",
		Synopsis: "[flags] [FILE]\n\tcirunner lint FILE...",
		About: `Cirunner runs a pipeline file in the dialect of GitLab CI on this machine, with
bash. FILE is .gitlab-ci.yml unless another is named. Jobs work in copies of the
current directory; logs and artifacts stay in ./.cirunner. A first interrupt
cancels the run: scripts are stopped, after_scripts run. A second one aborts it.
SIGQUIT lets running jobs end and starts no other. lint only checks files.`,
		Exit: `0 all was well, 1 jobs failed, 2 the arguments or the file are wrong,
3 the runner or a service failed, 129, 130, 131, 143 stopped by SIGHUP, SIGINT,
SIGQUIT, SIGTERM before all jobs had ended`,
		Flags: o.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			if len(args) > 0 && args[0] == "lint" {
				return lint.Run(args[1:], std.Out)
			}
			return run(ctx, &o, args, std)
		},
	}
}
