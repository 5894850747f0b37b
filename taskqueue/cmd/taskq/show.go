package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// maxShown is how much of a payload and a result is shown to people, in bytes.
const maxShown = 4 << 10

func showCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		var failed error
		for _, id := range e.args {
			t, err := e.queue.Get(ctx, id)
			switch {
			case err != nil:
				err = e.about(id, err)
			case e.json:
				err = json.NewEncoder(e.stdout).Encode(t)
			default:
				err = e.show(t)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	}
}

// about says which task an error is about.
func (e *env) about(id string, err error) error {
	if errors.Is(err, taskqueue.ErrNotFound) {
		return fmt.Errorf("%s: %w in queue %s", plain.Line(id), err, plain.Line(e.queue.Name()))
	}
	return fmt.Errorf("%s: %w", plain.Line(id), err)
}

// show writes what is known of a task, but for what is empty.
func (e *env) show(t taskqueue.Info) error {
	var b strings.Builder
	line := func(name string, value any) {
		s := fmt.Sprint(value)
		if s != "" && s != "0" && s != "0s" && s != "-" && s != "map[]" && s != "false" {
			_, _ = fmt.Fprintf(&b, "%-13s  %s\n", name, strings.ReplaceAll(plain.Text(s), "\n", "\n"+strings.Repeat(" ", 15)))
		}
	}
	line("id", t.ID)
	line("state", stateOf(t))
	line("type", t.Type)
	line("queue", t.Queue)
	line("priority", t.Priority)
	line("unique key", t.UniqueKey)
	line("limit key", t.LimitKey)
	line("after", strings.Join(t.After, ", "))
	line("if one fails", t.OnFailed)
	line("enqueued", when(t.EnqueuedAt))
	if t.State != taskqueue.StateWaiting {
		line("due", when(t.DueAt))
	}
	line("expires", when(t.ExpiresAt))
	line("timeout", t.Timeout)
	line("kept for", t.Retention)
	line("started", when(t.StartedAt))
	line("ended", when(t.EndedAt))
	line("lease until", when(t.LeaseEnd))
	line("worker", t.Worker)
	line("attempt", t.Attempt)
	line("failures", of(t.Failures, t.MaxFailures))
	line("crashes", of(t.Crashes, t.MaxCrashes))
	line("given back", t.Releases)
	line("token", t.Token)
	line("asked to stop", t.CancelRequested)
	if t.State == taskqueue.StateDone || t.State == taskqueue.StateRunning {
		line("earlier error", t.LastError)
	} else {
		line("last error", t.LastError)
	}
	for _, h := range headers(t.Headers) {
		line("header", h)
	}
	line("payload", bytesOf(t.Payload))
	line("result", bytesOf(t.Result))
	line("progress", bytesOf(t.Progress))
	_, err := fmt.Fprintln(e.stdout, b.String())
	return err
}

// of is a count and its limit; "" if it is 0.
func of(n, most int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", n, most)
}

// bytesOf shows bytes as a Go string.
func bytesOf(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case len(b) > maxShown:
		return fmt.Sprintf("%q… (%d bytes; -json has all)", b[:maxShown], len(b))
	}
	return fmt.Sprintf("%q", b)
}

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
