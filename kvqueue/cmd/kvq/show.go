package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/kvqueue"
)

// mostShown is how much of a value is shown on a line.
const mostShown = 120

// quoted is a value as a terminal can show it.
func quoted(value []byte) string {
	if len(value) > mostShown {
		return fmt.Sprintf("%q... (%d bytes)", value[:mostShown], len(value))
	}
	return strconv.Quote(string(value))
}

func (e *env) writeJSON(v any) error { return json.NewEncoder(e.stdout).Encode(v) }

// itemJSON is an item as JSON. A value that is no text is in base64.
func itemJSON(i kvqueue.Item) map[string]any {
	v := map[string]any{"key": i.Key.String(), "attempts": i.Attempt}
	if !i.Added.IsZero() {
		v["added"] = i.Added
	}
	if utf8.Valid(i.Value) {
		v["value"] = string(i.Value)
	} else {
		v["base64"] = i.Value
	}
	if i.Group != "" {
		v["group"] = i.Group
	}
	return v
}

// ofGroup says of which group an item is, if it is of one.
func ofGroup(i kvqueue.Item) string {
	if i.Group == "" {
		return ""
	}
	return fmt.Sprintf(" group=%q", i.Group)
}

func peekCommand(f *flag.FlagSet) func(context.Context, *env) error {
	n := f.Int("n", 10, "how many are shown at most")
	raw := f.Bool("raw", false, "write the values alone, as they are")
	return func(ctx context.Context, e *env) error {
		return e.with(ctx, func(q *kvqueue.Queue) error {
			items, err := q.Peek(ctx, *n)
			if err != nil {
				return err
			}
			for _, i := range items {
				switch {
				case *raw:
					_, err = e.stdout.Write(append(i.Value, '\n'))
				case e.json:
					err = e.writeJSON(itemJSON(i))
				case i.Attempt > 0:
					e.sayf("%v %s (%d tries)%s\n", i.Key, quoted(i.Value), i.Attempt, ofGroup(i))
				default:
					e.sayf("%v %s%s\n", i.Key, quoted(i.Value), ofGroup(i))
				}
			}
			return err
		})
	}
}

func lenCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		return e.with(ctx, func(q *kvqueue.Queue) error {
			n, err := q.Len(ctx)
			switch {
			case err != nil:
				return err
			case e.json:
				return e.writeJSON(n)
			}
			e.sayf("%d\n", n.Ready)
			return nil
		})
	}
}

func statsCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		return e.with(ctx, func(q *kvqueue.Queue) error {
			a, err := q.Audit(ctx)
			switch {
			case err != nil:
				return err
			case e.json:
				return e.writeJSON(a)
			}
			e.sayf("queue %q in %s\n", e.name, e.store.name)
			return e.showAudit(a)
		})
	}
}

func (e *env) showAudit(a kvqueue.Audit) error {
	w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n any, what string) { _, _ = fmt.Fprintf(w, "%s\t%v\t  %s\n", name, n, what) }
	row("ready", a.Ready, "")
	if !a.Oldest.IsZero() {
		row("oldest", max(0, time.Since(a.Oldest)).Round(time.Second), "since the first ready item was added")
	}
	if a.Groups > 0 {
		row("grouped", a.Grouped, "of the ready ones are of a group")
		row("groups", a.Groups, "have items that are ready or claimed")
	}
	row("claimed", a.Claimed, "")
	row("dead", a.Dead, "")
	row("bytes", a.Bytes, "of their values")
	row("takers", a.Takers, "handles that take items")
	row("sessions", len(a.Sessions), "")
	row("policy", "", policyText(a.Policy))
	row("floor", a.Floor, fmt.Sprintf("and the store is at revision %d", a.Revision))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range a.Sessions {
		state := "alive"
		switch {
		case !s.Alive && s.Claims > 0:
			state = "gone: they go back as soon as a process waits for items"
		case !s.Alive:
			state = "gone"
		}
		e.sayf("  session %x of %q: %d claimed, %s\n", uint64(s.ID), s.Owner, s.Claims, state)
	}
	return nil
}
