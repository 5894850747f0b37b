package taskqueue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// A ticker adds the tasks of a periodic job, for one worker.
type ticker struct {
	w    *worker
	own  *periodic // as this process has defined it
	p    periodic  // with the schedule that is in force
	told string    // the last schedule of others that the observer was told of
}

// tick adds the tasks of a periodic job until ctx is done.
func (w *worker) tick(ctx context.Context, own *periodic) error {
	t := &ticker{w: w, own: own, p: *own}
	t.define(ctx)
	last := t.refresh(ctx)
	now := clock.Now()
	if t.p.catchUp && !last.IsZero() {
		if at := t.p.latest(last, now); !at.IsZero() {
			t.add(ctx, at)
		}
	}
	for at := t.p.next(now); !at.IsZero(); at = t.p.next(now) {
		if sleepUntil(ctx, at.Add(-lead)) != nil {
			return nil
		}
		if now = maxTime(at, clock.Now()); !t.turn(ctx, at, now) {
			now = at.Add(-time.Second) // by the schedule that is in force now
		}
	}
	return nil
}

// turn is one tick, at its time; now is later if the process was asleep. It reports
// false if another schedule is in force meanwhile.
func (t *ticker) turn(ctx context.Context, at, now time.Time) bool {
	if text := t.p.text; text != t.own.text { // that of another process: is it still known?
		if t.refresh(ctx); t.p.text != text {
			return false
		}
	}
	if now.Sub(at) > missed {
		if !t.p.catchUp {
			return true
		}
		at = t.p.latest(at.Add(-time.Second), now)
	}
	if !t.add(ctx, at) {
		t.refresh(ctx)
	}
	return true
}

// sleepUntil sleeps until a time of day: the clock may be put forward or back meanwhile.
func sleepUntil(ctx context.Context, at time.Time) error {
	for left := clock.Until(at); left > 0; left = clock.Until(at) {
		if err := async.Sleep(ctx, min(left, time.Minute)); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// define notes our schedule, unless one is known that is newer, or as new.
func (t *ticker) define(ctx context.Context) {
	t.ask(ctx, func(ctx context.Context) error {
		_, err := t.w.q.store.Tick(ctx, Tick{Queue: t.own.task.Queue, Name: t.own.name, Schedule: t.own.text, Defined: t.own.defined})
		return err
	})
}

// refresh asks the store for the last tick, and for the schedule that is in force; that is
// our own if the store has none that is as new.
func (t *ticker) refresh(ctx context.Context) (last time.Time) {
	var all []Periodic
	if !t.ask(ctx, func(ctx context.Context) (err error) {
		all, err = t.w.q.store.Periodic(ctx, t.own.task.Queue)
		return err
	}) {
		return last
	}
	i := slices.IndexFunc(all, func(known Periodic) bool { return known.Name == t.own.name })
	if i < 0 {
		t.p = *t.own
		return last
	}
	if t.p.text != all[i].Schedule {
		t.p = *t.own
		t.follow(all[i])
	}
	return all[i].Last
}

// follow takes over the schedule of another process unless it is older, and says so, once.
func (t *ticker) follow(known Periodic) {
	if known.Schedule == t.own.text || known.Defined.Before(t.own.defined.Truncate(time.Microsecond)) {
		return
	}
	other := *t.own
	err := other.parse(known.Schedule)
	if err == nil {
		other.defined = known.Defined
		t.p = other
	}
	if t.told == known.Schedule {
		return
	}
	t.told = known.Schedule
	why := fmt.Errorf("taskqueue: periodic job %q runs on the schedule %q of %s, not on %q of %s of this process: if that is to be the one, start a program that is newer, or Unschedule the job", t.own.name,
		known.Schedule, known.Defined.UTC().Format(time.RFC3339), t.own.text, t.own.defined.UTC().Format(time.RFC3339))
	if err != nil {
		why = fmt.Errorf("%w. This process does not understand it: %w", why, err)
	}
	t.w.tell(Event{Kind: EventSchedule, Queue: t.own.task.Queue, Type: t.own.task.Type, Err: why})
}

// add adds the task of one tick, and reports false if the store refuses it: another
// process has added it, or its schedule is not the one that is in force.
func (t *ticker) add(ctx context.Context, at time.Time) (added bool) {
	task := t.p.task
	task.ID = t.p.name + at.UTC().Format(tickID)
	task.RunAt = at
	t.ask(ctx, func(ctx context.Context) (err error) {
		added, err = t.w.q.store.Tick(ctx, Tick{Queue: task.Queue, Name: t.p.name, Schedule: t.p.text, Defined: t.p.defined, At: at, Task: task})
		return err
	})
	return added
}

// ask calls f until the store answers, and reports whether it did.
func (t *ticker) ask(ctx context.Context, f func(context.Context) error) bool {
	_, err := async.Retry(ctx, async.Backoff(pause(0), maxIdle), func(context.Context) (none struct{}, err error) {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err = f(call); err != nil && ctx.Err() == nil {
			t.w.tell(Event{Kind: EventStore, Queue: t.own.task.Queue, Err: err})
		}
		if permanent(err) {
			err = async.Final(err)
		}
		return none, err
	})
	return err == nil
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
