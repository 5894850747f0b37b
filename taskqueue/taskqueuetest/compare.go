package taskqueuetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// look gets every task that there may be.
func (p *program) look() (map[string]taskqueue.Info, error) {
	all := map[string]taskqueue.Info{}
	for id := 'a'; id < 'a'+6; id++ {
		i, err := p.s.Get(ctx, queue, string(id))
		switch {
		case err == nil:
			all[string(id)] = i
		case !errors.Is(err, taskqueue.ErrNotFound):
			return nil, err
		}
	}
	return all, nil
}

// compare compares every task with the model, which takes over the exact times.
func (p *program) compare() error {
	before := time.Now()
	all, err := p.look()
	if err != nil {
		return err
	}
	after := time.Now()
	if len(all) != len(p.m.tasks) {
		return fmt.Errorf("the store has %d tasks, the model %d", len(all), len(p.m.tasks))
	}
	for id, i := range all {
		t := p.m.tasks[id]
		if t == nil {
			return fmt.Errorf("the store has task %s, the model has not", id)
		}
		if diff := t.differs(&i, before, after); diff != "" {
			return fmt.Errorf("task %s: %s: %+v", id, diff, i)
		}
	}
	return nil
}

// differs says in what i, as it was read between two times, differs from t.
func (t *modelTask) differs(i *taskqueue.Info, before, after time.Time) string {
	var all []string
	not := func(what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			all = append(all, fmt.Sprintf("its %s is %s, in the model %s", what, g, w))
		}
	}
	if t.state == taskqueue.StateScheduled || t.state == taskqueue.StateRetrying {
		if i.DueAt.Before(t.dueLow.Add(-time.Microsecond)) || i.DueAt.After(t.dueHigh.Add(2*time.Microsecond)) {
			all = append(all, fmt.Sprintf("it is due at %v, in the model from %v to %v", i.DueAt, t.dueLow, t.dueHigh))
		}
		t.dueLow, t.dueHigh = i.DueAt, i.DueAt
		// A ready one may have become so just now.
		if due := !i.DueAt.After(before); due || i.DueAt.After(after) {
			want := t.state
			if due {
				want = taskqueue.StateReady
			}
			not("state", i.State, want)
		}
	} else {
		not("state", i.State, t.state)
	}
	if t.state.Ended() {
		t.ended = i.EndedAt
	}
	not("payload", i.Payload, t.task.Payload)
	not("token", i.Token, t.token)
	not("attempt", i.Attempt, t.attempt)
	not("failures", i.Failures, t.failures)
	not("crashes", i.Crashes, t.crashes)
	not("releases", i.Releases, t.releases)
	not("request to be cancelled", i.CancelRequested, t.cancel)
	not("progress", string(i.Progress), t.progress)
	not("parents", i.After, t.task.After)
	not("way to go on", i.OnFailed, t.task.OnFailed)
	not("unique key", i.UniqueKey, t.task.UniqueKey)
	not("limit key", i.LimitKey, t.task.LimitKey)
	return strings.Join(all, "; ")
}

// end checks what can be said of the whole store.
func (p *program) end() error {
	if err := p.compare(); err != nil {
		return err
	}
	listed := map[string]int{}
	for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
		page, err := p.s.List(ctx, queue, taskqueue.ListRequest{State: s})
		if err != nil {
			return err
		}
		for _, i := range page.Tasks {
			listed[i.ID]++
		}
	}
	for id, t := range p.m.tasks {
		if n := listed[id]; n != 1 && (p.inBubble || !t.waits()) { // else its time may have come between two pages
			return fmt.Errorf("R1: task %s is listed in %d states", id, n)
		}
	}
	stats, err := p.s.Stats(ctx, queue)
	if err != nil {
		return err
	}
	var sum int64
	for _, n := range stats.States {
		sum += n
	}
	if sum != int64(len(p.m.tasks)) {
		return fmt.Errorf("the states count %d tasks, the model has %d: %v", sum, len(p.m.tasks), stats.States)
	}
	for _, counts := range []map[taskqueue.Counter]int64{stats.Counts, p.m.counts} {
		for c := range counts {
			if got, want := stats.Counts[c], p.m.counts[c]; got != want {
				return fmt.Errorf("it has counted %d as %s, the model %d", got, c, want)
			}
		}
	}
	a, ok := p.s.(taskqueue.Auditor)
	if !ok {
		return nil
	}
	faults, err := a.Audit(ctx, queue)
	if err == nil && len(faults) > 0 {
		slices.Sort(faults)
		err = fmt.Errorf("the audit says: %s", strings.Join(faults, "; "))
	}
	return err
}
