package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// A config is what the flags say.
type config struct {
	accounts  int
	transfers int
	images    int
	requests  int // for each image
}

// parseFlags reads args. Its errors are ready to be shown and say what to do.
func parseFlags(args []string) (config, error) {
	var cfg config
	flags := newFlags(&cfg)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q; there are only flags, like -transfers 500", flags.Arg(0))
	}
	return cfg, cfg.check()
}

func newFlags(cfg *config) *flag.FlagSet {
	flags := flag.NewFlagSet("actor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&cfg.accounts, "accounts", 4, "open `n` accounts, each with 100.00")
	flags.IntVar(&cfg.transfers, "transfers", 1000, "make `n` transfers between them")
	flags.IntVar(&cfg.images, "images", 3, "serve `n` images")
	flags.IntVar(&cfg.requests, "requests", 8, "ask for each of them `n` times at once")
	return flags
}

// check refuses numbers that make no sense.
func (cfg *config) check() error {
	for _, f := range []struct {
		name              string
		value, least, top int
	}{
		{"accounts", cfg.accounts, 2, 1000},
		{"transfers", cfg.transfers, 1, 0},
		{"images", cfg.images, 1, 100},
		{"requests", cfg.requests, 1, 10000},
	} {
		if f.top == 0 && f.value < f.least {
			return fmt.Errorf("-%s must be %d or more", f.name, f.least)
		}
		if f.value < f.least || f.top > 0 && f.value > f.top {
			return fmt.Errorf("-%s must be %d to %d", f.name, f.least, f.top)
		}
	}
	return nil
}

// usage is the text of -h. The flags print their own defaults.
func usage() string {
	var b strings.Builder
	b.WriteString(`Actor moves money between accounts from many goroutines at once, looking
meanwhile whether it is all there, then has many goroutines download the same
images from a server of its own, and counts what the server was asked for.

	actor [flags]

Flags:

`)
	flags := newFlags(new(config))
	flags.SetOutput(&b)
	flags.PrintDefaults()
	b.WriteString(`
Exit status: 0 all was right, 1 it was not, 2 wrong arguments, 130 interrupted.
`)
	return b.String()
}
