package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// listed are the states in the order in which all are listed: what is of interest now
// comes first.
var listed = []taskqueue.State{
	taskqueue.StateRunning, taskqueue.StateReady, taskqueue.StateRetrying, taskqueue.StateScheduled, taskqueue.StateWaiting,
	taskqueue.StateDead, taskqueue.StateCancelled, taskqueue.StateDone,
}

func listCommand(f *flag.FlagSet) func(context.Context, *env) error {
	state := f.String("state", "", "only tasks in this `state`: scheduled, ready, running, retrying, done, dead, cancelled or waiting")
	most := f.Int("n", 100, "how many at most; 0: all")
	newest := f.Bool("newest", false, "in the inverse order: what has ended last comes first")
	return func(ctx context.Context, e *env) error {
		states := listed
		if *state != "" {
			s, err := taskqueue.ParseState(*state)
			if err != nil {
				return usagef("-state: %v", err)
			}
			states = []taskqueue.State{s}
		}
		l := &lister{e: e, left: *most, endless: *most <= 0}
		for _, s := range states {
			if err := l.list(ctx, taskqueue.ListRequest{State: s, Reverse: *newest}); err != nil {
				return err
			}
		}
		return l.end(ctx)
	}
}

// A lister writes tasks page by page: however many there are, few are in memory.
type lister struct {
	e       *env
	t       *table // nil: nothing was written yet
	left    int    // how many more
	endless bool
	cut     bool // there are more
	any     bool
}

// list writes the tasks in one state.
func (l *lister) list(ctx context.Context, r taskqueue.ListRequest) error {
	for {
		page, err := l.e.queue.List(ctx, r)
		if err != nil {
			return err
		}
		for _, t := range page.Tasks {
			if l.left == 0 && !l.endless {
				l.cut = true
				return nil
			}
			l.left--
			if err := l.task(t); err != nil {
				return err
			}
		}
		if l.t != nil {
			if err := l.t.flush(); err != nil {
				return err
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return nil
		}
	}
}

func (l *lister) task(t taskqueue.Info) error {
	l.any = true
	if l.e.json {
		return json.NewEncoder(l.e.stdout).Encode(t)
	}
	if l.t == nil {
		l.t = newTable(l.e.stdout, "ID", "STATE", "TYPE", "WHEN", ">ATTEMPT", ">FAILURES", ">CRASHES", "WHAT")
		l.t.widths = []int{26, 9, 8, 12, 0, 0, 0, 0} // so that pages mostly fit each other
	}
	l.t.add(plain.Line(t.ID), stateOf(t), plain.Line(t.Type), whenOf(t), strconv.Itoa(t.Attempt), strconv.Itoa(t.Failures), strconv.Itoa(t.Crashes), whatOf(t))
	return nil
}

// end writes what is left, and says on stderr what people may wonder about.
func (l *lister) end(ctx context.Context) error {
	if l.t != nil {
		if err := l.t.flush(); err != nil {
			return err
		}
	}
	switch {
	case l.cut:
		l.e.notef("there are more: -n 0 lists all")
	case !l.any:
		return l.e.noteUnknown(ctx, l.e.queue.Name())
	}
	return nil
}

// stateOf is the state of a task, and whether a limit keeps it.
func stateOf(t taskqueue.Info) string {
	if t.Limited {
		return t.State.String() + ", limited"
	}
	return t.State.String()
}

// whenOf is the time of a task that matters in its state.
func whenOf(t taskqueue.Info) string {
	switch {
	case t.State == taskqueue.StateRunning:
		return "since " + strings.TrimSuffix(when(t.StartedAt), " ago")
	case t.State.Ended():
		return when(t.EndedAt)
	case t.State == taskqueue.StateWaiting:
		return "-"
	}
	return when(t.DueAt)
}

// whatOf is what else matters of a task in its state.
func whatOf(t taskqueue.Info) string {
	if t.State == taskqueue.StateRunning {
		s := "on " + plain.Line(t.Worker)
		if len(t.Progress) > 0 {
			s += ": " + oneLine(string(t.Progress))
		}
		return s
	}
	if t.State == taskqueue.StateWaiting {
		return oneLine("after " + strings.Join(t.After, ", "))
	}
	return oneLine(t.LastError)
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
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(plain.Line(plain.Head(s, 400))); len(r) > 60 {
		return string(r[:60]) + "…"
	} else {
		return string(r)
	}
}

// notef says something to people. It is no part of what was asked for.
func (e *env) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stderr, "taskq: "+format+"\n", args...)
}

// noteUnknown says which queues there are, if name is none of them: it may be misspelt.
func (e *env) noteUnknown(ctx context.Context, name string) error {
	names, err := e.store.Queues(ctx)
	if err != nil || slices.Contains(names, name) {
		return err
	}
	const most = 10
	known := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		known = append(known, plain.Line(n))
	}
	switch {
	case len(names) == 0:
		e.notef("there is no queue %s yet, nor any other", plain.Line(name))
	case len(names) > most:
		e.notef("there is no queue %s yet; there are %s and %d more", plain.Line(name), strings.Join(known, ", "), len(names)-most)
	default:
		e.notef("there is no queue %s yet; there are: %s", plain.Line(name), strings.Join(known, ", "))
	}
	return nil
}
