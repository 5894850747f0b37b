//go:build unix

// Watchstep runs a command under two watchdogs: one asks an HTTP address whether
// it is healthy, the other looks at the time of a file that it has to touch. A
// command that a watchdog gives up, that takes too long, or that a signal to
// watchstep cancels is stopped the same way: its whole process group, with TERM,
// and with KILL after the grace. How it has ended decides the exit status.
//
//	go run ./examples/watchstep -demo sick
//	go run ./examples/watchstep -health http://localhost:8080/healthz -- ./server
//	go run ./examples/watchstep -beat /tmp/alive -stale 30s -timeout 1h -- ./job
//
// It is meant to be copied: main.go is the program, from flags to exit status;
// watch.go has the watchdogs, and how they are put around the command; ending.go
// tells the endings apart; demo.go is a command with health and heartbeat to try
// it with. The process group is that of package proc.
//
// It exits with 0 if the command has succeeded, 1 if it has failed, 3 if a
// watchdog has given it up, 124 after a timeout, 128 and the number of the signal
// that has cancelled it (130 for Ctrl-C), 141 if nobody reads its output any more,
// 2 when the arguments are wrong. (go run hides the status: it prints it and exits
// with 1.)
package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/foreground"
	"github.com/ambit-go/ambit/proc"
)

func main() {
	cfg := new(config)
	program := cli.Program{
		Name:     "watchstep",
		Synopsis: "[flags] -- command [argument...]",
		About: `Watchstep runs a command and looks after it: it asks an HTTP address whether it
is healthy, and whether a file has been touched lately. A command that is given
up, takes too long, or is cancelled with INT, TERM or HUP is stopped with its
whole process group: TERM, and KILL after the grace. A second signal ends the
grace.`,
		Exit: `0 done, 1 the command failed, 2 wrong arguments, 3 a watchdog gave
it up, 124 it took too long, 141 nobody reads its output, 128 and the number of the signal that cancelled it`,
		Flags: cfg.flags,
		Run:   cfg.run,
	}
	program.Main()
}

// A config is what the flags say.
type config struct {
	health, beat   string
	every, startup time.Duration
	answer, stale  time.Duration
	timeout, grace time.Duration
	tolerate       int
	demo           string
}

func (cfg *config) flags(flags *flag.FlagSet) {
	flags.StringVar(&cfg.health, "health", "", "ask this `URL`, which has to answer with a status of 200 to 299")
	flags.DurationVar(&cfg.answer, "answer", time.Second, "the `time` that an answer may take")
	flags.StringVar(&cfg.beat, "beat", "", "look at the time of this `file`, which the command has to touch")
	flags.DurationVar(&cfg.stale, "stale", 30*time.Second, "how old that may be: a `time`")
	flags.DurationVar(&cfg.every, "every", time.Second, "the `time` between two looks")
	flags.DurationVar(&cfg.startup, "startup", 0, "the `time` before the first look; 0 for that of -every")
	flags.IntVar(&cfg.tolerate, "tolerate", 2, "let `n` bad looks in a row pass")
	flags.DurationVar(&cfg.timeout, "timeout", 0, "stop the command after this `time`; 0 for never")
	flags.DurationVar(&cfg.grace, "grace", proc.DefaultGrace, "the `time` between TERM and KILL")
	flags.StringVar(&cfg.demo, "demo", "", "run a built-in command of a `kind`: "+strings.Join(kinds(), ", "))
}

// check refuses what makes no sense.
func (cfg *config) check(args []string) error {
	for _, f := range []struct {
		name     string
		d, least time.Duration
	}{
		{"stale", cfg.stale, time.Millisecond},
		{"answer", cfg.answer, time.Millisecond},
		{"every", cfg.every, time.Millisecond},
		{"startup", cfg.startup, 0},
		{"timeout", cfg.timeout, 0},
		{"grace", cfg.grace, time.Millisecond},
	} {
		if f.d < f.least {
			return cli.Usagef("-%s %v: must be at least %v", f.name, f.d, f.least)
		}
	}
	if u, err := url.Parse(cfg.health); cfg.health != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return cli.Usagef("-health %s: not a URL like http://localhost:8080/healthz", cfg.health)
	}
	switch {
	case cfg.tolerate < 0:
		return cli.Usagef("-tolerate %d: must not be negative", cfg.tolerate)
	case cfg.demo != "" && (len(args) > 0 || cfg.health != "" || cfg.beat != ""):
		return cli.Usagef("-demo brings a command, its health and its heartbeat: leave out yours")
	case cfg.demo != "" && demos[cfg.demo] == "":
		return cli.Usagef("-demo %s: there are %s", cfg.demo, strings.Join(kinds(), ", "))
	case cfg.demo == "" && len(args) == 0:
		return cli.Usagef("nothing to run: give a command after --, or -demo sick")
	case cfg.demo == "" && cfg.health == "" && cfg.beat == "":
		return cli.Usagef("nothing to look at: give -health or -beat")
	}
	return nil
}

// run runs the command and makes an exit status of its end.
func (cfg *config) run(ctx context.Context, args []string, std cli.Streams) error {
	if err := cfg.check(args); err != nil {
		return err
	}
	cli.FailWritesToClosedPipes()
	c := proc.Command{
		Args:   args,
		Grace:  cfg.grace,
		Stdout: foreground.Piped(std.Out),
		Stderr: foreground.Piped(std.Err),
	}
	var result proc.Result
	err := async.Scope(ctx, func(ctx context.Context) error {
		if cfg.demo != "" {
			if err := cfg.startDemo(ctx, &c); err != nil {
				return err
			}
		}
		c.Signalling = func(sig syscall.Signal, cause error) { // called by the abort hook
			if cause != nil {
				fmt.Fprintf(std.Err, "watchstep: %s: %v\n", proc.SignalName(sig), cause)
			}
		}
		ctx = foreground.StopOnSignals(ctx, &c)
		var err error
		result, err = cfg.watched(ctx, c)
		return err
	}, async.Name("watchstep"))
	for _, note := range result.Notes() {
		fmt.Fprintf(std.Err, "watchstep: note: %s\n", note)
	}
	return end(result, err)
}
