//go:build unix

package main

import (
	"flag"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/examples/attach/daemon"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A config is what the flags say.
type config struct {
	socket  string
	image   string
	command string
	daemon  string // how the built-in daemon misbehaves
	limits  Limits
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.StringVar(&cfg.socket, "socket", "", "use the daemon that listens on this `socket`; without it, one that is built in")
	flags.StringVar(&cfg.image, "image", "", "with -socket: make the container from this `image`")
	flags.StringVar(&cfg.command, "c", "", "run this `script` rather than that of a file")
	flags.StringVar(&cfg.daemon, "daemon", "", "have the built-in daemon misbehave: `one of` "+strings.Join(daemon.Flaws(), ", "))

	l := &cfg.limits
	flags.DurationVar(&l.Request, "request", 10*time.Second, "give up on the daemon if it does not answer within this `time`")
	flags.DurationVar(&l.Script, "timeout", 0, "stop the script after this `time`; 0 for no limit")
	flags.DurationVar(&l.Grace, "grace", 10*time.Second, "the `time` that a script has after TERM, before KILL; in whole seconds")
	flags.DurationVar(&l.Output, "output", 5*time.Second, "the `time` that output may come after the end of the script")
}

// check refuses what makes no sense.
func (cfg *config) check(args []string) error {
	l := cfg.limits
	switch {
	case len(args) > 1:
		return cli.Usagef("unexpected argument %q; a script is one file, and stdin is its input", args[1])
	case len(args) == 1 && cfg.command != "":
		return cli.Usagef("a script is given with -c or as a file, not both")
	case len(args) == 0 && cfg.command == "" && cfg.socket != "":
		return cli.Usagef("what is to be run? Name a file, or give a script with -c")
	case l.Script < 0:
		return cli.Usagef("-timeout must not be negative; 0 sets no limit")
	case min(l.Request, l.Grace, l.Output) <= 0:
		return cli.Usagef("-request, -grace and -output must be positive")
	case l.Grace%time.Second != 0:
		return cli.Usagef("-grace %v: the daemon counts in whole seconds", l.Grace)
	case cfg.socket == "" && cfg.image != "":
		return cli.Usagef("-image is for -socket; the built-in daemon has no images")
	case cfg.socket != "" && cfg.daemon != "":
		return cli.Usagef("-daemon is for the built-in daemon, not for -socket")
	}
	return nil
}

// script returns the script to run: that of -c, of the file, or the built-in
// one.
func (cfg *config) script(args []string) (string, error) {
	switch {
	case cfg.command != "":
		return cfg.command, nil
	case len(args) == 0:
		return demoScript, nil
	}
	text, err := os.ReadFile(args[0])
	return string(text), err
}
