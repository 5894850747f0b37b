//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/audit"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
)

// settle brings the world to rest, and looks at it.
func (w *world) settle(ctx context.Context) (r audit.Report, err error) {
	if err := w.mend(ctx); err != nil {
		return r, fmt.Errorf("%s: to mend it: %w", w.name, err)
	}
	if err := w.fleet.end("producer", syscall.SIGTERM); err != nil {
		return r, err
	}
	if err := w.resolve(ctx); err != nil {
		return r, fmt.Errorf("%s: to repeat what was not answered: %w", w.name, err)
	}
	if err := w.drain(ctx); err != nil {
		return r, fmt.Errorf("%s: to wait for the end of all tasks: %w", w.name, err)
	}
	if err := w.fleet.end("worker", syscall.SIGTERM); err != nil {
		return r, err
	}
	return w.audit(ctx)
}

// resolve repeats every enqueue that was not answered.
func (w *world) resolve(ctx context.Context) error {
	entries, err := ledger.Read(w.journals())
	if err != nil {
		return err
	}
	unknown := map[string]*taskqueue.Task{}
	for _, e := range entries {
		if e.Kind == ledger.Trying {
			unknown[e.ID] = e.Task
		}
	}
	for _, e := range entries {
		if e.Kind == ledger.Added {
			delete(unknown, e.ID)
		}
	}
	j, err := ledger.Create(w.journals(), "auditor")
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	s, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	root, err := taskqueue.New(s)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(unknown)) { // those that others wait for first
		p := &producer{role: new(role), q: root.In(queueName), j: j}
		if _, err := p.enqueue(ctx, []taskqueue.Task{*unknown[id]}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// drain puts the clock of the store forward, so that what waits becomes due, until
// nothing waits or runs. It gives up when for long nothing has ended: the auditor says
// what has not.
func (w *world) drain(ctx context.Context) error {
	ahead, idle, last := 3*time.Hour, time.Now(), int64(-1)
	if err := w.advance(ahead); err != nil {
		return err
	}
	s, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for step := time.Now(); time.Since(idle) < time.Minute; rest(ctx, 50*time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		st, err := s.Stats(ctx, queueName)
		if err != nil {
			continue
		}
		n := st.States[taskqueue.StateScheduled] + st.States[taskqueue.StateReady] + st.States[taskqueue.StateRunning] + st.States[taskqueue.StateRetrying]
		if n == 0 {
			return nil
		}
		if n != last {
			last, idle = n, time.Now()
		}
		if time.Since(step) > 4*plan.Lease {
			ahead, step = ahead+time.Hour, time.Now()
			if err := w.advance(ahead); err != nil {
				return err
			}
		}
	}
	return nil
}

// audit reads everything, deletes all tasks, and looks whether anything is left.
func (w *world) audit(ctx context.Context) (r audit.Report, err error) {
	c := &audit.Case{Losses: w.losses}
	if c.Entries, err = ledger.Read(w.journals()); err != nil {
		return r, err
	}
	s, err := w.open(ctx)
	if err != nil {
		return r, err
	}
	err = c.Load(ctx, s, queueName)
	for state := taskqueue.StateScheduled; state <= taskqueue.StateWaiting && err == nil; state++ {
		for cursor, more := "", state != taskqueue.StateRunning; more && err == nil; more = cursor != "" {
			_, cursor, err = s.Purge(ctx, queueName, state, cursor)
		}
	}
	if e := s.Close(); err == nil {
		err = e
	}
	if err == nil {
		c.Left, err = w.left(ctx)
	}
	if err != nil {
		return r, fmt.Errorf("%s: to read the store: %w", w.name, err)
	}
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	r = audit.Check(c)
	r.Faults = append(w.fleet.faults, r.Faults...)
	return r, nil
}
