package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// benchQueue is the queue that is measured unless another is named. It has a name that
// nobody else uses, and always the same: nothing piles up in a store.
const benchQueue = "taskq-bench"

// Bounds of what bench does to a store.
const (
	benchMost    = 1_000_000
	benchBatch   = 100             // tasks a call
	benchDue     = 50              // tasks a second that are due, to see how late they are
	benchCleanup = 2 * time.Minute // how long it takes at most to delete what is left
)

// A benchPlan is what the flags say.
type benchPlan struct {
	n, callers, concurrency, payload int
	late, limit                      time.Duration
}

// A benchPart is what was measured: how much was done in which time.
type benchPart struct {
	Name      string  `json:"name"`
	N         int64   `json:"n"`
	Of        int64   `json:"of"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
}

// benchLate is how late tasks were, in milliseconds. Earliest is below 0 only if the
// clock of this machine is ahead of that of the store.
type benchLate struct {
	N        int     `json:"n"`
	Earliest float64 `json:"earliest_ms"`
	Median   float64 `json:"median_ms"`
	P99      float64 `json:"p99_ms"`
	Latest   float64 `json:"latest_ms"`
}

// A benchReport is the result.
type benchReport struct {
	Queue string      `json:"queue"`
	Parts []benchPart `json:"parts"`
	Late  *benchLate  `json:"late,omitempty"`
}

func benchCommand(f *flag.FlagSet) func(context.Context, *env) error {
	var p benchPlan
	f.IntVar(&p.n, "n", 10_000, fmt.Sprintf("how many `tasks` each part adds, at most %d", benchMost))
	f.IntVar(&p.callers, "callers", 32, "how many calls add tasks at the same `time`")
	f.IntVar(&p.concurrency, "concurrency", 64, "how many `tasks` run at the same time")
	f.IntVar(&p.payload, "payload", 100, "the `bytes` of a payload")
	f.DurationVar(&p.late, "late", 5*time.Second, "for how long tasks are due that show how late they are; 0: not at all")
	f.DurationVar(&p.limit, "limit", 30*time.Second, "how long each part may take: what is done by then is told")
	return func(ctx context.Context, e *env) (err error) {
		if p.n < 1 || p.n > benchMost || p.callers < 1 || p.concurrency < 1 || p.payload < 0 || p.late < 0 || p.limit <= 0 {
			return usagef("-n is from 1 to %d, -callers and -concurrency are at least 1, and nothing is negative", benchMost)
		}
		b := &bench{benchPlan: p, e: e, q: e.queue}
		if !e.queueGiven {
			b.q = e.queue.In(benchQueue)
		}
		if err := b.unused(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.clean(ctx)) }()
		if err := b.run(ctx); err != nil {
			return err
		}
		return b.print()
	}
}

// A bench measures a store with tasks that do nothing.
type bench struct {
	benchPlan
	e      *env
	q      *taskqueue.Queue
	report benchReport
}

// unused makes sure that nobody works with the queue.
func (b *bench) unused(ctx context.Context) error {
	stats, err := b.q.Stats(ctx)
	if err != nil {
		return err
	}
	for state, n := range stats.States {
		if n > 0 && !state.Ended() {
			return fmt.Errorf("queue %s has tasks that are %v: another bench runs, or one was killed. Then delete them with taskq purge -queue %s %v, or name another queue with -queue",
				b.q.Name(), state, b.q.Name(), state)
		}
	}
	return nil
}

// clean deletes what is left, also when ctx is done.
func (b *bench) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), benchCleanup)
	defer cancel()
	return purgeAll(ctx, b.q)
}

func (b *bench) run(ctx context.Context) error {
	b.report.Queue = b.q.Name()
	if err := b.add(ctx, fmt.Sprintf("enqueue, one a call, %d calls at a time", b.callers), 1); err != nil {
		return err
	}
	if err := b.add(ctx, fmt.Sprintf("enqueue, %d a call, %d calls at a time", benchBatch, b.callers), benchBatch); err != nil {
		return err
	}
	if err := b.work(ctx); err != nil {
		return err
	}
	if b.late > 0 {
		return b.measureLate(ctx)
	}
	return nil
}

// part runs f, which counts what it has done, and notes how long it took. f may stop
// when its ctx is done, which is when the part has had its time.
func (b *bench) part(ctx context.Context, name string, of int64, f func(ctx context.Context, done *atomic.Int64) error) error {
	b.e.progressf("%s ...\n", name)
	limited, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	var done atomic.Int64
	start := time.Now()
	var took time.Duration
	err := async.Scope(limited, func(limited context.Context) error {
		async.Go(limited, func(ctx context.Context) error { return b.progress(ctx, &done, of) }, async.Daemon())
		err := f(limited, &done)
		took = time.Since(start)
		return err
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && limited.Err() == nil {
		return err
	}
	seconds := took.Seconds()
	b.report.Parts = append(b.report.Parts, benchPart{name, done.Load(), of, seconds, float64(done.Load()) / max(seconds, 1e-9)})
	return nil
}

// progress tells every second how much is done.
func (b *bench) progress(ctx context.Context, done *atomic.Int64, of int64) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			b.e.progressf("  %d of %d\n", done.Load(), of)
		}
	}
}

// add adds tasks, some a call.
func (b *bench) add(ctx context.Context, name string, batch int) error {
	payload := []byte(strings.Repeat("x", b.payload))
	return b.part(ctx, name, int64(b.n), func(ctx context.Context, done *atomic.Int64) error {
		var taken atomic.Int64
		return async.Scope(ctx, func(ctx context.Context) error {
			for range b.callers {
				async.Go(ctx, func(ctx context.Context) error {
					for {
						from := taken.Add(int64(batch)) - int64(batch)
						tasks := make([]taskqueue.Task, max(min(int64(batch), int64(b.n)-from), 0))
						if len(tasks) == 0 {
							return nil
						}
						for i := range tasks {
							tasks[i] = taskqueue.Task{Type: "bench", Payload: payload}
						}
						if _, err := b.enqueue(ctx, tasks); err != nil {
							return err
						}
						done.Add(int64(len(tasks)))
					}
				})
			}
			return nil
		})
	})
}

// enqueue adds tasks unless ctx is done. It does not leave a call that is on its way: clean would not find those tasks.
func (b *bench) enqueue(ctx context.Context, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b.q.EnqueueAll(context.WithoutCancel(ctx), tasks)
}

// work runs what was added.
func (b *bench) work(ctx context.Context) error {
	of := b.report.Parts[0].N + b.report.Parts[1].N
	return b.part(ctx, fmt.Sprintf("claim and settle, %d at a time", b.concurrency), of, func(ctx context.Context, done *atomic.Int64) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return b.q.Work(ctx, taskqueue.Handlers{"bench": func(context.Context, *taskqueue.Claim) error {
			if done.Add(1) == of {
				cancel()
			}
			return nil
		}}, taskqueue.Concurrency(b.concurrency))
	})
}

// measureLate has tasks run at their times, evenly spread, and notes how late they are.
func (b *bench) measureLate(ctx context.Context) error {
	n := max(int(b.late.Seconds()*benchDue), 1)
	b.e.progressf("how late, %d due a second for %v ...\n", benchDue, b.late)
	for from := 0; from < n; from += benchBatch {
		tasks := make([]taskqueue.Task, min(benchBatch, n-from))
		for i := range tasks {
			after := time.Second + time.Duration(from+i)*time.Second/benchDue + rand.N(time.Second/benchDue)
			tasks[i] = taskqueue.Task{Type: "bench", Delay: after}
		}
		if _, err := b.enqueue(ctx, tasks); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var all []float64
	working, cancel := context.WithTimeout(ctx, b.late+b.limit)
	defer cancel()
	err := b.q.Work(working, taskqueue.Handlers{"bench": func(_ context.Context, c *taskqueue.Claim) error {
		late := time.Since(c.DueAt)
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, float64(late.Microseconds())/1000); len(all) == n {
			cancel()
		}
		return nil
	}}, taskqueue.Concurrency(b.concurrency))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || len(all) == 0 {
		return err
	}
	slices.Sort(all)
	at := func(p float64) float64 { return all[min(int(p*float64(len(all))), len(all)-1)] }
	b.report.Late = &benchLate{len(all), all[0], at(0.5), at(0.99), all[len(all)-1]}
	return nil
}

// print writes the report.
func (b *bench) print() error {
	if b.e.json {
		return json.NewEncoder(b.e.stdout).Encode(b.report)
	}
	t := newTable(b.e.stdout, "PART", ">DONE", ">OF", ">SECONDS", ">A SECOND")
	for _, p := range b.report.Parts {
		t.add(p.Name, fmt.Sprint(p.N), fmt.Sprint(p.Of), fmt.Sprintf("%.2f", p.Seconds), fmt.Sprintf("%.0f", p.PerSecond))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if l := b.report.Late; l != nil {
		b.e.sayf("\nhow late %d tasks were: median %.1f ms, 99 of 100 at most %.1f ms, the latest %.1f ms\n", l.N, l.Median, l.P99, l.Latest)
	}
	return nil
}

// progressf tells people how far a command is. It does not disturb what is written to stdout.
func (e *env) progressf(format string, args ...any) { _, _ = fmt.Fprintf(e.stderr, format, args...) }
