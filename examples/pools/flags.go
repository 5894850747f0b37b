package main

import (
	"context"
	"flag"

	"github.com/ambit-go/ambit/examples/internal/cli"
)

// most is how many workers or goroutines there may be. No pool here is for more.
const most = 1_000_000

// A config is what the flags say.
type config struct {
	workers int
	tasks   int // of each worker
	size    int // of each pool
	batch   int
}

// program is the command, on some pools: what it does is in main.go.
func program(pools []pool) *cli.Program {
	var cfg config
	return &cli.Program{
		Name:     "pools",
		Synopsis: "[flags]",
		About: `Pools runs the same ordered work on five goroutine pools, checks that every
worker saw its tasks in order, one at a time, and prints how often each pool was
asked for a goroutine.`,
		Exit: `0 the order was kept, 1 it was not or a pool could not be used, 2
wrong arguments, 130 interrupted, 143 terminated`,
		Flags: cfg.define,
		Run: func(ctx context.Context, args []string, std cli.Streams) error {
			if len(args) > 0 {
				return cli.Usagef("unexpected argument %q; there are only flags, like -tasks 500", args[0])
			}
			if err := cfg.check(); err != nil {
				return err
			}
			return run(ctx, cfg, pools, std)
		},
	}
}

func (cfg *config) define(flags *flag.FlagSet) {
	flags.IntVar(&cfg.workers, "workers", 100, "run `n` workers")
	flags.IntVar(&cfg.tasks, "tasks", 1000, "give each worker `n` tasks")
	flags.IntVar(&cfg.size, "size", 4, "make each pool of `n` goroutines")
	flags.IntVar(&cfg.batch, "batch", 64, "have a worker offer its goroutine to others after `n` tasks")
}

// check refuses numbers that make no sense.
func (cfg *config) check() error {
	switch {
	case cfg.workers < 1 || cfg.workers > most:
		return cli.Usagef("-workers must be 1 to %d", most)
	case cfg.tasks < 1:
		return cli.Usagef("-tasks must be 1 or more")
	case cfg.size < 1 || cfg.size > most:
		return cli.Usagef("-size must be 1 to %d", most)
	case cfg.batch < 1:
		return cli.Usagef("-batch must be 1 or more; with 1 workers take turns task by task")
	}
	return nil
}
