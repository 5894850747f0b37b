//go:build unix

// Sshrun runs a script on another machine over ssh, as a step of a pipeline
// does, and tells how it ended there.
//
// Without -host it runs on a server that is built in, which can be told to
// misbehave:
//
//	go run ./examples/sshrun
//	go run ./examples/sshrun -c 'echo to stderr >&2; exit 3'
//	go run ./examples/sshrun -server ignore-signals -timeout 1s -term 1s -kill 1s -c 'sleep 600'
//	go run ./examples/sshrun -host ci@example.com -identity key build.sh
//
// It is meant to be copied. connect.go gets as far as a shell that waits for its
// script, run.go runs the script, stop.go stops it in stages, output.go copies
// what it prints, outcome.go is how it may end, hostkey.go decides whom to
// trust; flags.go and demo.go are about this program. The server is in
// sshserver.
//
// It exits as the script does: with its status, or with 128 and the number of
// the signal that has ended it. When it has stopped the script it exits with 124
// at -timeout, with 128 and the number of the signal that it got itself, and with
// 141 if nobody reads its output any more; 255 if it could not run the script or
// does not know how it ended, 2 when the arguments are wrong. (go run hides the
// status: it prints it and exits with 1.)
package main

import (
	"context"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

func main() { newProgram().Main() }

func newProgram() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "sshrun",
		Synopsis: "[flags] [file]",
		About: `Sshrun runs a script over ssh and tells how it ended. What it prints is printed
here. On a signal, or at -timeout, the script gets TERM, then KILL; then the
connection is closed. A second signal ends the time between TERM and KILL, a third
the program. The script is a file, - for stdin, or given with -c.
Without -host it is run on a server that is built in.`,
		Exit: `that of the script, or 128 and the number of the signal that ended
it; 124 stopped by -timeout, 130 interrupted, 141 nobody reads its
output, 255 it could not be run or nobody knows how it ended, 2 wrong arguments`,
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			return withStatus(cfg.run(ctx, args, std))
		},
	}
}

// run is the program behind its flags.
func (cfg *config) run(ctx context.Context, args []string, std cli.Streams) error {
	if err := cfg.check(args); err != nil {
		return err
	}
	script, err := cfg.script(args, std.In)
	if err != nil {
		return err
	}
	step := Step{
		Script: script, Shell: cfg.shell, Limits: cfg.limits,
		Stdout: std.Out, Stderr: std.Err, Notes: std.Err,
	}
	if cfg.host == "" {
		return cfg.demo(ctx, step)
	}
	to, err := cfg.destination()
	if err != nil {
		return err
	}
	return run(ctx, to, step)
}

// run runs a step on another machine, until a signal.
func run(ctx context.Context, to destination, step Step) error {
	return remote.UntilSignal(ctx, "sshrun", func(ctx, hurry context.Context) error {
		step.Hurry = hurry
		return Run(ctx, to, step)
	})
}
