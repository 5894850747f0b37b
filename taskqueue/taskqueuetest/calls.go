package taskqueuetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func (p *program) enqueue() error {
	tasks := make([]taskqueue.Task, 1+p.pick(3))
	for i := range tasks {
		tasks[i] = p.task()
		p.after(&tasks[i])
	}
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		got, err := p.s.Enqueue(ctx, queue, tasks)
		after := time.Now()
		if p.m.refuses(tasks) {
			p.note("Enqueue %+v: %v", tasks, err)
			if !refused(err) {
				return fmt.Errorf("enqueue after a task that is not known said %v, %w", got, err)
			}
			continue
		}
		if err != nil {
			return err
		}
		p.note("Enqueue %+v: %v", tasks, got)
		if len(got) != len(tasks) {
			return fmt.Errorf("%d results for %d tasks", len(got), len(tasks))
		}
		for i, t := range tasks {
			if want := p.m.add(t, before, after); got[i] != want {
				return fmt.Errorf("enqueue of %s said %v, the model %v", t.ID, got[i], want)
			}
		}
		p.m.release(before, after)
	}
	return nil
}

func (p *program) claim() error {
	p.nonces++
	r := store.ClaimRequest{
		Queue: queue, Worker: []string{"v", "w"}[p.pick(2)], Nonce: fmt.Sprint(p.nonces), Max: p.pick(4),
		Lease: []time.Duration{p.unit, 3 * p.unit, 10 * time.Minute}[p.pick(3)],
		Weigh: uint64(max(p.pick(20)-10, 0)),
	}
	p.last[r.Worker] = r
	got, err := p.s.Claim(ctx, r)
	if err != nil {
		return err
	}
	p.note("Claim %+v: %v", r, refs(got.Tasks))
	now, err := p.look()
	if err != nil {
		return err
	}
	for _, t := range got.Tasks {
		p.runs = append(p.runs, store.Ref{ID: t.ID, Token: t.Token})
	}
	return p.m.claim(r, got, now)
}

// replay is a claim whose answer got lost.
func (p *program) replay() error {
	r, ok := p.last[[]string{"v", "w"}[p.pick(2)]]
	if !ok {
		return nil
	}
	got, err := p.s.Claim(ctx, r)
	if err != nil {
		return err
	}
	p.note("Claim %+v once more: %v", r, refs(got.Tasks))
	return p.m.replay(r, got)
}

func refs(tasks []taskqueue.Info) (all []store.Ref) {
	for _, t := range tasks {
		all = append(all, store.Ref{ID: t.ID, Token: t.Token})
	}
	return all
}

func (p *program) settle() error {
	all := make([]store.Outcome, 1+p.pick(2))
	for i := range all {
		o := &all[i]
		o.Ref, o.Kind = p.ref(), store.OutcomeKind(1+p.pick(7))
		if o.Kind == store.Failed || o.Kind == store.Released || o.Kind == store.Snoozed || o.Kind == store.Unhandled {
			o.After = p.span()
		}
		if o.Kind == store.Succeeded {
			o.Result = []byte("result")
		}
	}
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		got, err := p.s.Settle(ctx, queue, all)
		after := time.Now()
		if err != nil {
			return err
		}
		p.note("Settle %+v: %v", all, got)
		p.m.stepped(before, after)
		for i, o := range all {
			if want := p.m.settle(o, before, after); i >= len(got) || got[i] != want {
				return fmt.Errorf("settle of %s said %v, the model %v for the outcome %d", o.ID, got, want, i)
			}
		}
		p.m.release(before, after)
	}
	return nil
}

func (p *program) extend() error {
	r := store.ExtendRequest{Queue: queue, Worker: "w", Lease: []time.Duration{p.unit, 10 * time.Minute}[p.pick(2)], Progress: map[string][]byte{}}
	for range 1 + p.pick(2) {
		ref := p.ref()
		r.Refs = append(r.Refs, ref)
		if p.pick(2) == 0 {
			r.Progress[ref.ID] = []byte{byte('0' + p.pick(10))}
		}
	}
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		got, err := p.s.Extend(ctx, r)
		after := time.Now()
		if err != nil {
			return err
		}
		p.note("Extend %+v: %v", r, got)
		p.m.stepped(before, after)
		for i, ref := range r.Refs {
			if want := p.m.extend(ref, r, before, after); i >= len(got) || got[i] != want {
				return fmt.Errorf("extend of %v said %v, the model %v", ref, got, want)
			}
		}
	}
	return nil
}

func (p *program) act() error {
	id, act := p.id(), store.Act(1+p.pick(4))
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		did, err := p.s.Act(ctx, queue, id, act)
		after := time.Now()
		p.note("Act %d on %s: %v %v", act, id, did, err)
		if err := p.m.act(id, act, did, err, before, after); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) purge() error {
	state := []taskqueue.State{taskqueue.StateScheduled, taskqueue.StateReady, taskqueue.StateRetrying, taskqueue.StateDone, taskqueue.StateDead, taskqueue.StateCancelled, taskqueue.StateWaiting}[p.pick(7)]
	before := time.Now()
	n, _, err := p.s.Purge(ctx, queue, state, "")
	after := time.Now()
	if err != nil {
		return err
	}
	p.note("Purge %v: %d", state, n)
	now, err := p.look()
	if err != nil {
		return err
	}
	return p.m.purge(state, n, now, before, after)
}

var epoch = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

func (p *program) tick() error {
	t := taskqueue.Tick{
		Queue: queue, Name: []string{"x", "y"}[p.pick(2)], Schedule: []string{"@hourly", "@hourly", "@daily"}[p.pick(3)],
		At: epoch.Add(time.Duration(p.pick(8)) * time.Hour), Defined: epoch.Add(time.Duration(p.pick(3)) * time.Hour),
	}
	if p.pick(5) == 0 {
		t.At = time.Time{} // only the schedule
	}
	t.Task = p.task()
	for range 1 + p.pick(2) { // the answer got lost
		before := time.Now()
		did, err := p.s.Tick(ctx, t)
		after := time.Now()
		if err != nil {
			return err
		}
		p.note("Tick %+v: %v", t, did)
		if want := p.m.tick(t, before, after); did != want {
			return fmt.Errorf("tick said %v, the model %v", did, want)
		}
	}
	if p.pick(8) > 0 {
		return nil
	}
	did, err := p.s.Unschedule(ctx, queue, t.Name)
	p.note("Unschedule %s: %v", t.Name, did)
	if want := p.m.unschedule(t.Name); err == nil && did != want {
		err = fmt.Errorf("unschedule said %v, the model %v", did, want)
	}
	return err
}

func (p *program) configure() error {
	set := taskqueue.Settings{Paused: p.pick(6) == 0, MaxDead: p.pick(3)}
	if p.pick(2) == 0 {
		set.Concurrency = p.pick(4)
	}
	if p.pick(3) == 0 { // a claim or a few in the time of a short lease
		set.Rate, set.Burst = float64(1+p.pick(4))/p.unit.Seconds(), p.pick(4)
	}
	if p.pick(3) == 0 {
		set.DeadRetention = []time.Duration{p.unit, 4 * p.unit, 10 * time.Minute}[p.pick(3)]
	}
	p.note("Configure %+v", set)
	did, err := p.s.Configure(ctx, queue, p.m.settings, set)
	if p.m.settings = set; err == nil && !did {
		err = errors.New("configure said that the settings were others before")
	}
	return err
}
