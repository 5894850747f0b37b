package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

func listCommand(f *flag.FlagSet) func(context.Context, *env) error {
	state := f.String("state", "ready", "scheduled, ready, running, retrying, done, dead or cancelled")
	most := f.Int("n", 100, "how many at most; 0: all")
	return func(ctx context.Context, e *env) error {
		s, err := taskqueue.ParseState(*state)
		if err != nil {
			return usagef("%v", err)
		}
		w := tabwriter.NewWriter(e.stdout, 0, 8, 2, ' ', 0)
		if !e.json {
			_, _ = fmt.Fprintln(w, "ID\tTYPE\tDUE\tATTEMPT\tFAILURES\tCRASHES\tERROR")
		}
		req := taskqueue.ListRequest{State: s}
		for n := 0; ; {
			page, err := e.queue.List(ctx, req)
			if err != nil {
				return err
			}
			for _, t := range page.Tasks {
				if n++; *most > 0 && n > *most {
					return w.Flush()
				}
				if e.json {
					if err := json.NewEncoder(e.stdout).Encode(t); err != nil {
						return err
					}
					continue
				}
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", t.ID, t.Type, when(t.DueAt), t.Attempt, t.Failures, t.Crashes, oneLine(t.LastError))
			}
			if req.Cursor = page.Cursor; req.Cursor == "" {
				return w.Flush()
			}
		}
	}
}

// when is a time as people read it: how long from now, and not in years.
func when(t time.Time) string {
	d := time.Until(t).Round(time.Second)
	switch {
	case t.IsZero():
		return "-"
	case d > 0:
		return "in " + d.String()
	case d < 0:
		return (-d).String() + " ago"
	}
	return "now"
}

// oneLine is the beginning of a text.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return s
}

func showCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if len(e.args) == 0 {
			return usagef("which? Give one id or more")
		}
		var failed error
		for _, id := range e.args {
			t, err := e.queue.Get(ctx, id)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
				continue
			}
			if e.json {
				err = json.NewEncoder(e.stdout).Encode(t)
			} else {
				err = e.show(t)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	}
}

// show writes what is known of a task, but for what is empty.
func (e *env) show(t taskqueue.Info) error {
	w := tabwriter.NewWriter(e.stdout, 0, 8, 2, ' ', 0)
	line := func(name string, value any) {
		if s := fmt.Sprint(value); s != "" && s != "0" && s != "0s" && s != "-" && s != "map[]" && s != "false" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", name, s)
		}
	}
	line("id", t.ID)
	line("state", t.State)
	line("type", t.Type)
	line("queue", t.Queue)
	line("priority", t.Priority)
	line("unique key", t.UniqueKey)
	line("enqueued", when(t.EnqueuedAt))
	line("due", when(t.DueAt))
	line("started", when(t.StartedAt))
	line("ended", when(t.EndedAt))
	line("lease until", when(t.LeaseEnd))
	line("worker", t.Worker)
	line("attempt", t.Attempt)
	line("failures", t.Failures)
	line("crashes", t.Crashes)
	line("token", t.Token)
	line("asked to stop", t.CancelRequested)
	line("last error", t.LastError)
	line("headers", t.Headers)
	line("payload", fmt.Sprintf("%q", t.Payload))
	if len(t.Result) > 0 {
		line("result", fmt.Sprintf("%q", t.Result))
	}
	if len(t.Progress) > 0 {
		line("progress", fmt.Sprintf("%q", t.Progress))
	}
	_, _ = fmt.Fprintln(w)
	return w.Flush()
}

func statsCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) (err error) {
		names := e.args
		if len(names) == 0 {
			if names, err = e.store.Queues(ctx); err != nil {
				return err
			}
		}
		w := tabwriter.NewWriter(e.stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
		if !e.json {
			_, _ = fmt.Fprintln(w, "QUEUE\tSCHEDULED\tREADY\tRUNNING\tRETRYING\tDONE\tDEAD\tCANCELLED\tLATE\tPAUSED\t")
		}
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
			_, _ = fmt.Fprintf(w, "%s\t", name)
			for st := taskqueue.StateScheduled; st <= taskqueue.StateCancelled; st++ {
				_, _ = fmt.Fprintf(w, "%d\t", s.States[st])
			}
			_, _ = fmt.Fprintf(w, "%v\t%v\t\n", s.Latest.Round(time.Millisecond), s.Settings.Paused)
		}
		return w.Flush()
	}
}

func actCommand(act taskqueue.Act) func(*flag.FlagSet) func(context.Context, *env) error {
	return func(*flag.FlagSet) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			if len(e.args) == 0 {
				return usagef("which? Give one id or more")
			}
			var failed error
			for _, id := range e.args {
				done, err := e.store.Act(ctx, e.queue.Name(), id, act)
				if err == nil && !done {
					err = &statusError{errors.New("the task is in no state for that"), 3}
				}
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
				}
			}
			return failed
		}
	}
}

func purgeCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if len(e.args) != 1 {
			return usagef("which state?")
		}
		s, err := taskqueue.ParseState(e.args[0])
		if err != nil {
			return usagef("%v", err)
		}
		n, err := e.queue.Purge(ctx, s)
		if err == nil {
			_, err = fmt.Fprintf(e.stdout, "%d tasks deleted\n", n)
		}
		return err
	}
}

func pauseCommand(paused bool) func(*flag.FlagSet) func(context.Context, *env) error {
	return func(*flag.FlagSet) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			return e.queue.Configure(ctx, func(s *taskqueue.Settings) { s.Paused = paused })
		}
	}
}

func auditCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		faults, err := audit(ctx, e.store)
		for _, f := range faults {
			_, _ = fmt.Fprintln(e.stdout, f)
		}
		if err == nil && len(faults) > 0 {
			err = fmt.Errorf("%d faults", len(faults))
		}
		return err
	}
}

// audit checks all queues.
func audit(ctx context.Context, s taskqueue.Store) (faults []string, err error) {
	a, ok := s.(taskqueue.Auditor)
	if !ok {
		return nil, errors.New("this store cannot check itself")
	}
	names, err := s.Queues(ctx)
	for _, name := range names {
		some, failed := a.Audit(ctx, name)
		err = errors.Join(err, failed)
		for _, f := range some {
			faults = append(faults, "queue "+name+": "+f)
		}
	}
	slices.Sort(faults)
	return faults, err
}

// hidden are commands that demo and bench start for themselves.
var hidden = map[string]func(ctx context.Context, args []string) error{"demo-worker": demoWorker}
