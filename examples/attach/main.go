//go:build unix

// Attach runs a script in a container of a daemon, with its input, output and
// errors carried over one connection, and tells how it ended there.
//
// Without -socket the daemon is one that is built in, whose containers are
// process groups and which can be told to misbehave:
//
//	go run ./examples/attach
//	seq 5 | go run ./examples/attach -c 'while read -r n; do echo "$n squared is $((n*n))"; done'
//	go run ./examples/attach -timeout 1s -c 'trap "echo last words; exit 7" TERM; sleep 600 & wait'
//	go run ./examples/attach -daemon no-stop -timeout 1s -grace 1s -request 1s -c 'sleep 600'
//
// It is meant to be copied. job.go is the life of a container, attach.go the
// roles of its output and its input, stop.go how it is stopped, client.go the
// API with the hijacked connection, outcome.go how it may end; flags.go and
// demo.go are about this program. Package frame reads and writes the frames of
// the output, the daemon is in package daemon.
//
// It exits with the status of the script. When it has stopped the script it
// exits with 124 at -timeout, with 128 and the number of the signal that it got,
// and with 141 if nobody reads its output any more; 125 if the daemon or the connection failed, or the input broke, or nobody
// knows how the script ended; 2 when the arguments are wrong. (go run hides the
// status: it prints it and exits with 1.)
package main

import (
	"context"
	"crypto/rand"

	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

func main() { newProgram().Main() }

func newProgram() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "attach",
		Synopsis: "[flags] [file]",
		About: `Attach runs a script in a container of a daemon and is its input, output and
errors. The end of the input does not end the script; an input that breaks does.
On a signal, or at -timeout, the daemon is asked to stop it; a second signal ends
the grace, and a third the program. The script is a file, or given with -c. Without -socket the daemon is one that is built in.`,
		Exit: `that of the script; 124 stopped by -timeout, 130 interrupted, 141
nobody reads its output, 125 the daemon, the connection or the input failed, or
nobody knows how the script ended, 2 wrong arguments`,
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
	script, err := cfg.script(args)
	if err != nil {
		return err
	}
	job := Job{
		Name: "attach-" + rand.Text(), Image: cfg.image, Cmd: []string{"bash", "-c", script},
		Stdin: std.In, Stdout: std.Out, Stderr: std.Err, Notes: std.Err, Limits: cfg.limits,
	}
	if cfg.socket == "" {
		return cfg.demo(ctx, job)
	}
	return run(ctx, cfg.socket, job)
}

// run runs a job with the daemon at a socket, until a signal.
func run(ctx context.Context, socket string, job Job) error {
	return remote.UntilSignal(ctx, "attach", func(ctx, hurry context.Context) error {
		job.Hurry = hurry
		return Run(ctx, newClient(socket, job.Limits.Request), job)
	})
}
