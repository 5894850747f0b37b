package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"

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
