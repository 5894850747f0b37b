package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/taskqueue"
)

const (
	waiting   = 100_000 // tasks whose time is far away
	dueSecond = 100     // tasks that are due in each second
	seconds   = 10
)

// measureLateness is T3.
func measureLateness(b *bench) {
	q, stop := b.server.ambit(b.ctx)
	ours := lateness(b, q)
	stop()
	peer := lateAsynq(b)
	if b.ctx.Err() == nil {
		tellLateness(b, "T3", "", "asynq", 20, ours, peer)
	}
}

// tellLateness tells how late tasks were, of which 99 of 100 may be late by limit milliseconds.
func tellLateness(b *bench, id, where, peers string, limit float64, ours, peer []time.Duration) {
	row := func(what string, p float64) measure.Row {
		return measure.Row{
			ID: id, What: fmt.Sprintf("%show late, %d waiting, %d due a second: %s", where, waiting, dueSecond, what), Peer: peers, Unit: "ms",
			Ours: measure.Sample{millis(quantile(ours, p))}, Theirs: measure.Sample{millis(quantile(peer, p))}, Once: true,
		}
	}
	b.tell(row("median", 0.5))
	p99 := row("p99", 0.99)
	p99.Budget = measure.AtMost(limit)
	b.tell(p99)
	first := row("earliest", 0)
	first.Budget, first.Once = measure.AtLeast(0), false // one that is early is one too many
	b.tell(first)
}

// lates notes how late tasks are.
type lates struct {
	mu  sync.Mutex
	all []time.Duration
	end func()
}

func (l *lates) note(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all = append(l.all, late); len(l.all) == dueSecond*seconds {
		l.end()
	}
}

// dueTimes are the times at which the tasks are due, evenly spread.
func dueTimes() (times []time.Time) {
	start := time.Now().Add(3 * time.Second)
	for i := range dueSecond * seconds {
		times = append(times, start.Add(time.Duration(i)*time.Second/dueSecond))
	}
	return times
}

// lateness returns how late the tasks of a queue of ours are.
func lateness(b *bench, q *taskqueue.Queue) []time.Duration {
	fill(b, q, waiting, func(i int, t *taskqueue.Task) { t.Delay = time.Hour + time.Duration(i)*time.Millisecond })
	times := dueTimes()
	fill(b, q, len(times), func(i int, t *taskqueue.Task) { t.RunAt = times[i] })
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	l := &lates{end: cancel}
	must(q.Work(ctx, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		l.note(time.Since(c.RunAt))
		return nil
	}}))
	return l.all
}

func lateAsynq(b *bench) []time.Duration {
	c, stop := b.server.asynqClient(b.ctx)
	defer stop()
	fillAsynq(b, c, waiting, func(i int) []asynq.Option {
		return []asynq.Option{asynq.ProcessIn(time.Hour + time.Duration(i)*time.Millisecond)}
	})
	times := dueTimes()
	together(callers, len(times), func(i int) {
		_, err := c.EnqueueContext(b.ctx, asynq.NewTask("t", fmt.Append(nil, i)), asynq.ProcessAt(times[i]))
		must(err)
	})
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	l := &lates{end: cancel}
	defer b.server.asynqServer(0, func(t *asynq.Task) {
		var i int
		_, err := fmt.Sscan(string(t.Payload()), &i)
		must(err)
		l.note(time.Since(times[i]))
	})()
	<-ctx.Done()
	return l.all
}
