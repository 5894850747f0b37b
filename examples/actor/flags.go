package main

import (
	"context"
	"flag"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// A config is what the flags say.
type config struct {
	accounts  int
	transfers int
	images    int
	requests  int // for each image
}

// program is the command: what it does is in main.go.
func program() *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "actor",
		Synopsis: "[flags]",
		About: `Actor moves money between accounts from many goroutines at once, looking
meanwhile whether it is all there, then has many goroutines download the same
images from a server of its own, and counts what the server was asked for.`,
		Exit:  "0 all was right, 1 it was not, 2 wrong arguments, 130 interrupted, 143\nterminated",
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			if len(args) > 0 {
				return cli.Usagef("unexpected argument %q; there are only flags, like -transfers 500", args[0])
			}
			if err := cfg.check(); err != nil {
				return err
			}
			return run(ctx, cfg, &cli.Out{W: std.Out})
		},
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.IntVar(&cfg.accounts, "accounts", 4, "open `n` accounts, each with 100.00")
	flags.IntVar(&cfg.transfers, "transfers", 1000, "make `n` transfers between them")
	flags.IntVar(&cfg.images, "images", 3, "serve `n` images")
	flags.IntVar(&cfg.requests, "requests", 8, "ask for each of them `n` times at once")
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
			return cli.Usagef("-%s must be %d or more", f.name, f.least)
		}
		if f.value < f.least || f.top > 0 && f.value > f.top {
			return cli.Usagef("-%s must be %d to %d", f.name, f.least, f.top)
		}
	}
	return nil
}
