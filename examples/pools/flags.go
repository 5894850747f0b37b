package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
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

// parseFlags reads args. Its errors are ready to be shown and say what to do.
func parseFlags(args []string) (config, error) {
	var cfg config
	flags := newFlags(&cfg)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q; there are only flags, like -tasks 500", flags.Arg(0))
	}
	return cfg, cfg.check()
}

func newFlags(cfg *config) *flag.FlagSet {
	flags := flag.NewFlagSet("pools", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&cfg.workers, "workers", 100, "run `n` workers")
	flags.IntVar(&cfg.tasks, "tasks", 1000, "give each worker `n` tasks")
	flags.IntVar(&cfg.size, "size", 4, "make each pool of `n` goroutines")
	flags.IntVar(&cfg.batch, "batch", 64, "have a worker offer its goroutine to others after `n` tasks")
	return flags
}

// check refuses numbers that make no sense.
func (cfg *config) check() error {
	switch {
	case cfg.workers < 1 || cfg.workers > most:
		return fmt.Errorf("-workers must be 1 to %d", most)
	case cfg.tasks < 1:
		return errors.New("-tasks must be 1 or more")
	case cfg.size < 1 || cfg.size > most:
		return fmt.Errorf("-size must be 1 to %d", most)
	case cfg.batch < 1:
		return errors.New("-batch must be 1 or more; with 1 workers take turns task by task")
	}
	return nil
}

// usage is the text of -h. The flags print their own defaults.
func usage() string {
	var b strings.Builder
	b.WriteString(`Pools runs the same ordered work on five goroutine pools, checks that every
worker saw its tasks in order, one at a time, and prints how often each pool was
asked for a goroutine.

	pools [flags]

Flags:

`)
	flags := newFlags(new(config))
	flags.SetOutput(&b)
	flags.PrintDefaults()
	b.WriteString(`
Exit status: 0 the order was kept, 1 it was not or a pool could not be used, 2
wrong arguments, 130 interrupted.
`)
	return b.String()
}
