package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ambit-go/ambit/service"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// can says what each act can be done to.
var can = map[store.Act]string{
	store.ActCancel:  "only tasks that wait or run can be cancelled",
	store.ActRetry:   "only dead letters and cancelled tasks can be retried, unless another task has their unique key",
	store.ActPromote: "only tasks that wait for their time can be promoted",
	store.ActDelete:  "tasks that run cannot be deleted: cancel them first",
}

func actCommand(act store.Act) func(*flag.FlagSet) func(context.Context, *env) error {
	return func(*flag.FlagSet) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			var failed error
			for _, id := range e.args {
				done, err := e.store.Act(ctx, e.queue.Name(), id, act)
				if err == nil && !done {
					err = e.refused(ctx, id, act)
				}
				if err != nil {
					failed = errors.Join(failed, e.about(id, err))
				} else if e.json {
					failed = errors.Join(failed, json.NewEncoder(e.stdout).Encode(map[string]any{"id": id, "done": true}))
				}
			}
			return failed
		}
	}
}

// refused says why an act could not be done.
func (e *env) refused(ctx context.Context, id string, act store.Act) error {
	t, err := e.queue.Get(ctx, id)
	if err != nil {
		return err
	}
	return service.WithStatus(fmt.Errorf("it is %v: %s", t.State, can[act]), 3)
}

func purgeCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if len(e.args) != 1 {
			return usagef("purge needs one state: scheduled, ready, retrying, done, dead, cancelled or waiting")
		}
		s, err := taskqueue.ParseState(e.args[0])
		if err != nil {
			return usagef("%v", err)
		}
		n, err := e.queue.Purge(ctx, s)
		if err != nil {
			return err
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(map[string]any{"queue": e.queue.Name(), "deleted": n})
		}
		_, err = fmt.Fprintf(e.stdout, "%d tasks deleted\n", n)
		if err == nil && n == 0 {
			err = e.noteUnknown(ctx, e.queue.Name())
		}
		return err
	}
}

// pauseCommand works on the queues that are its arguments, or on that of -queue.
func pauseCommand(paused bool) func(*flag.FlagSet) func(context.Context, *env) error {
	return func(*flag.FlagSet) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			names := e.args
			if len(names) == 0 {
				names = []string{e.queue.Name()}
			}
			for _, name := range names {
				if err := e.noteUnknown(ctx, name); err != nil { // it can be paused before it is there
					return err
				}
				if err := e.queue.In(name).Configure(ctx, func(s *taskqueue.Settings) { s.Paused = paused }); err != nil {
					return err
				}
				if e.json {
					if err := json.NewEncoder(e.stdout).Encode(map[string]any{"queue": name, "paused": paused}); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
}

func auditCommand(*flag.FlagSet) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		faults, err := auditAll(ctx, e.store)
		if err != nil {
			return err
		}
		if e.json {
			err = json.NewEncoder(e.stdout).Encode(map[string]any{"faults": append([]string{}, faults...)})
		} else {
			for _, f := range faults {
				_, err = fmt.Fprintln(e.stdout, plain.Line(f))
			}
		}
		if err == nil && len(faults) > 0 {
			err = fmt.Errorf("%d faults", len(faults))
		}
		return err
	}
}

// auditAll checks all queues.
func auditAll(ctx context.Context, s taskqueue.Store) (faults []string, err error) {
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

// headers are the headers of a task as text, sorted.
func headers(h map[string]string) (all []string) {
	for _, k := range slices.Sorted(maps.Keys(h)) {
		all = append(all, k+": "+h[k])
	}
	return all
}

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
