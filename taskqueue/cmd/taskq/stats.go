package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

func statsCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		names, err := e.queues(ctx)
		if err != nil {
			return err
		}
		t := newTable(e.stdout, "QUEUE", ">SCHEDULED", ">READY", ">RUNNING", ">RETRYING", ">DONE", ">DEAD", ">CANCELLED", ">WAITING", ">LATE", "SETTINGS")
		for _, name := range names {
			s, err := e.store.Stats(ctx, name)
			if err != nil {
				return err
			}
			if e.json {
				if err := json.NewEncoder(e.stdout).Encode(s); err != nil {
					return err
				}
				continue
			}
			row := []string{plain.Line(name)}
			for st := taskqueue.StateScheduled; st <= taskqueue.StateWaiting; st++ {
				row = append(row, strconv.FormatInt(s.States[st], 10))
			}
			t.add(append(row, s.Latest.Round(time.Millisecond).String(), settings(s))...)
		}
		if e.json {
			return nil
		}
		return t.flush()
	}
}

// queues are those that the command line names, or all.
func (e *env) queues(ctx context.Context) ([]string, error) {
	names, err := e.named(ctx)
	if err != nil || len(names) > 0 {
		return names, err
	}
	return e.store.Queues(ctx)
}

// named are the queues that the command line names; none: all are meant. It says which
// of them there are not.
func (e *env) named(ctx context.Context) ([]string, error) {
	names := e.args
	if len(names) == 0 && e.queueGiven {
		names = []string{e.queue.Name()}
	}
	for _, name := range names {
		if err := taskqueue.CheckName("queue", name); err != nil {
			return nil, err
		}
		if err := e.noteUnknown(ctx, name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// settings says what is set for a queue, and how many tasks limits of keys and types keep.
func settings(stats taskqueue.Stats) string {
	s := stats.Settings
	text := ""
	add := func(is bool, format string, args ...any) {
		if is {
			text += " " + fmt.Sprintf(format, args...)
		}
	}
	add(s.Paused, "paused")
	add(s.Concurrency > 0, "concurrency=%d", s.Concurrency)
	add(s.Rate > 0, "rate=%v/s", s.Rate)
	add(s.Burst > 0, "burst=%d", s.Burst)
	add(len(stats.Limits) > 0, "limits=%d", len(stats.Limits))
	add(stats.Limited > 0, "limited=%d", stats.Limited)
	add(s.MaxDead > 0, "max-dead=%d", s.MaxDead)
	add(s.DeadRetention > 0, "dead-retention=%v", s.DeadRetention)
	if text == "" {
		return "-"
	}
	return text[1:]
}
