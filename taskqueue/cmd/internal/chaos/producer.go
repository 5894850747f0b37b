//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// produce enqueues tasks until ctx is done.
func (r *role) produce(ctx context.Context, s taskqueue.Store, j *ledger.Journal) error {
	q, err := taskqueue.New(s)
	if err != nil {
		return err
	}
	p := &producer{role: r, q: q.In(queueName), j: j, rng: rand.New(rand.NewPCG(r.Seed, 0))}
	for ctx.Err() == nil {
		if err := p.batch(ctx); err != nil {
			return err
		}
		rest(ctx, time.Duration(p.rng.IntN(60))*time.Millisecond)
	}
	return nil
}

type producer struct {
	*role
	q   *taskqueue.Queue
	j   *ledger.Journal
	rng *rand.Rand
	n   int
	// earlier are the last tasks that others may wait for.
	earlier []string
}

// batch adds some tasks.
func (p *producer) batch(ctx context.Context) error {
	var tasks []taskqueue.Task
	var trying []ledger.Entry
	earlier := p.earlier
	for range 1 + p.rng.IntN(8) {
		t := p.draw()
		plan.Relate(p.rng, &t, earlier)
		if t.UniqueKey == "" { // else it may be a duplicate, and nobody can wait for it
			earlier = append(earlier, t.ID)
		}
		tasks = append(tasks, t)
		trying = append(trying, ledger.Entry{Kind: ledger.Trying, ID: t.ID, Task: &t})
	}
	if err := p.j.Write(trying...); err != nil {
		return err
	}
	results, err := p.enqueue(ctx, tasks)
	if err != nil || len(results) == 0 {
		return err
	}
	p.earlier = earlier[max(len(earlier)-50, 0):]
	return p.cancel(ctx, tasks[0].ID, results[0].Verdict)
}

// enqueue adds tasks. An unknown outcome is resolved by the same call again. There are no results if the
// store does not know a task that one of them waits for, or ctx is done.
func (p *producer) enqueue(ctx context.Context, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	for ; ctx.Err() == nil; rest(ctx, 50*time.Millisecond) {
		began := ledger.Now()
		call, cancel := context.WithTimeout(ctx, 2*time.Second)
		results, err := p.q.EnqueueAll(call, tasks)
		cancel()
		var wrong *taskqueue.InvalidError
		switch {
		case err == nil:
			return results, p.j.WriteSynced(added(began, tasks, results)...)
		case errors.As(err, &wrong) && wrong.What == "After":
			return nil, p.j.Write(ledger.Entry{Kind: ledger.Refused, ID: tasks[0].ID, Text: err.Error()})
		case wrong != nil:
			return nil, err
		}
	}
	return nil, nil
}

func added(began int64, tasks []taskqueue.Task, results []taskqueue.Result) (all []ledger.Entry) {
	for i, r := range results {
		e := ledger.Entry{Kind: ledger.Added, Began: began, ID: tasks[i].ID, Verdict: r.Verdict}
		if r.Verdict == taskqueue.Duplicate {
			e.Holder = r.ID
		}
		all = append(all, e)
	}
	return all
}

func (p *producer) draw() taskqueue.Task {
	p.n++
	t := plan.Draw(p.rng, fmt.Sprintf("%s-%05d", p.Name, p.n), p.Kills)
	t.Priority = uint8(p.rng.IntN(taskqueue.Priorities))
	switch n := p.rng.IntN(20); {
	case n < 8:
		t.Delay = time.Duration(p.rng.IntN(1500_000)) * time.Microsecond
	case n == 8:
		t.RunAt = clock.Now().Add(time.Duration(p.rng.IntN(1500)) * time.Millisecond).Round(0)
	}
	if p.rng.IntN(8) == 0 {
		t.UniqueKey = fmt.Sprint("key", p.rng.IntN(20))
	}
	return t
}

// cancel cancels one task in twenty.
func (p *producer) cancel(ctx context.Context, id string, v taskqueue.Verdict) error {
	if v == taskqueue.Duplicate || p.rng.IntN(8) != 0 {
		return nil
	}
	_ = async.Sleep(ctx, time.Duration(p.rng.IntN(50))*time.Millisecond)
	if err := p.j.Write(ledger.Entry{Kind: ledger.Cancelling, ID: id}); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	began := ledger.Now()
	if ok, err := p.q.Cancel(call, id); err == nil && ok {
		return p.j.WriteSynced(ledger.Entry{Kind: ledger.Cancelled, Began: began, ID: id})
	}
	return nil
}
