package main

import (
	"context"
	"encoding/json"
	"flag"
	"strconv"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// limitCommand sets the limit of a key or of a type; without either it lists those of the queue.
func limitCommand(f *flag.FlagSet) func(context.Context, *env) error {
	var l taskqueue.Limit
	f.StringVar(&l.Type, "type", "", "instead of a key: the `type` of tasks whose key has no limit")
	f.IntVar(&l.Concurrency, "concurrency", 0, "how many run at a time; 0: no such limit")
	f.Float64Var(&l.Rate, "rate", 0, "how many start a second; 0: no such limit")
	f.IntVar(&l.Burst, "burst", 0, "how many of the rate may start at once; 0: one")
	return func(ctx context.Context, e *env) error {
		switch {
		case len(e.args) > 1 || len(e.args) == 1 && l.Type != "":
			return usagef("one key, or -type, and not both")
		case len(e.args) == 1:
			l.Key = e.args[0]
		case l == taskqueue.Limit{}:
			return e.limits(ctx)
		}
		if err := e.noteUnknown(ctx, e.queue.Name()); err != nil { // it can have limits before it is there
			return err
		}
		if err := e.queue.SetLimit(ctx, l); err != nil || !e.json {
			return err
		}
		return json.NewEncoder(e.stdout).Encode(l)
	}
}

// limits lists the limits of a queue.
func (e *env) limits(ctx context.Context) error {
	stats, err := e.queue.Stats(ctx)
	if err != nil {
		return err
	}
	t := newTable(e.stdout, "KEY", "TYPE", ">CONCURRENCY", ">RATE", ">BURST")
	for _, l := range stats.Limits {
		if e.json {
			if err := json.NewEncoder(e.stdout).Encode(l); err != nil {
				return err
			}
			continue
		}
		t.add(plain.Line(l.Key), plain.Line(l.Type), strconv.Itoa(l.Concurrency), strconv.FormatFloat(l.Rate, 'g', -1, 64), strconv.Itoa(l.Burst))
	}
	if e.json {
		return nil
	}
	return t.flush()
}
