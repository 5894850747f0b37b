//go:build unix

// Cirunner runs a pipeline file in the dialect of GitLab CI on this machine, with
// bash or in containers: stages and needs, before_script and after_script, retries,
// timeouts, artifacts, and services.
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
// a run from file to exit status, choose.go which jobs it has, containers.go the engine of containers, signals.go two
// signals that package service does not hear. In internal there are packages: pipeline reads files, lint checks
// them, plan decides which jobs run, runner runs them, engine has the containers of docker or podman, workdir has
// their directories and artifacts, joblog their logs, vars their variables, predefined those of the run, expr the
// expressions of rules; board is the live picture, view shows it, report sums it up.
//
// It exits with 0 if all was well, 1 if jobs or the run itself failed, 2 if the
// arguments or the file are wrong, 129, 130, 131 or 143 if it was stopped by
// SIGHUP, SIGINT, SIGQUIT or SIGTERM before all jobs had ended.
// (go run hides the status: it prints it and exits with 1.)
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/exit"
	"github.com/ambit-go/ambit/cirunner/internal/mask"
	"github.com/ambit-go/ambit/service"
)

func main() {
	service.Main(func(ctx context.Context) error { return command(ctx, os.Args[1:], os.Stdout) })
}

// command does what the arguments say.
func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	err := o.perform(ctx, args, out)
	return mask.Error(err, o.choice.secrets())
}

func (o *options) perform(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cirunner", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	o.define(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return usage(out)
	case err != nil:
		return exit.Usagef("%w", err)
	}
	if verb := flags.Arg(0); verb == "lint" || verb == "list" {
		switch err := flags.Parse(flags.Args()[1:]); {
		case errors.Is(err, flag.ErrHelp):
			return usage(out)
		case err != nil:
			return exit.Usagef("%w", err)
		}
		if err := o.check(); err != nil {
			return err
		}
		if verb == "lint" {
			return o.lint(ctx, flags.Args(), out)
		}
		return o.list(ctx, flags.Args(), out)
	}
	return run(ctx, o, flags.Args(), out)
}

const about = `Cirunner runs a pipeline file in the dialect of GitLab CI on this machine, with
bash; a job with an image runs in a container of docker or podman. FILE is
.gitlab-ci.yml unless another is named: of the current directory, or else of the
root of the git repository. Jobs work in copies of that directory; logs and
artifacts stay in .cirunner there. A first interrupt cancels the run: scripts are
stopped, after_scripts run. A second one aborts it. SIGQUIT lets running jobs end
and starts no other. lint only checks files; list says which jobs would run, and
why not.

	cirunner [flags] [FILE]
	cirunner list [flags] [FILE]
	cirunner lint [flags] FILE...

Flags:

`

const statuses = `
Exit status: 0 all was well, 1 jobs or the run itself failed, 2 the arguments or
the file are wrong, 129, 130, 131, 143 stopped by SIGHUP, SIGINT, SIGQUIT, SIGTERM
before all jobs had ended.
`

// usage prints the text of -h.
func usage(out io.Writer) error {
	var defaults options
	flags := flag.NewFlagSet("cirunner", flag.ContinueOnError)
	defaults.define(flags)
	var text strings.Builder
	flags.SetOutput(&text)
	flags.PrintDefaults()
	_, err := io.WriteString(out, about+text.String()+statuses)
	return err
}
