package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// window is how many tasks are posted to a worker before it is waited for, so
// that memory does not grow with -tasks.
const window = 1024

// A result is what one pool did.
type result struct {
	tasks       int   // that have run
	submissions int64 // that the pool saw
	took        time.Duration
	faults      []string // empty if the order was kept
}

// atOnce is how many workers have something to do at the same time, at most, so
// that neither memory nor the time that it takes to stop grows with -workers.
const atOnce = 1000

// measure runs the work of cfg on p. When it returns the pool is closed,
// whatever happened.
//
// A worker belongs to the task that posts to it: if ctx is cancelled it is closed,
// what it has queued is dropped, and what it runs is joined.
func measure(ctx context.Context, cfg config, p pool) (result, error) {
	ex, closePool, err := p.open(cfg.size)
	if err != nil {
		return result{}, fmt.Errorf("cannot make the pool %s: %w", p.name, err)
	}
	submitted, ex := newCounter(ex)
	s := scheduler.New(ex, scheduler.Batch(cfg.batch))
	ledgers := make([]ledger, cfg.workers)
	begin := time.Now()
	numbers := func(yield func(int) bool) {
		for i := range ledgers {
			if !yield(i) {
				return
			}
		}
	}
	err = async.ForEach(ctx, numbers, func(ctx context.Context, i int) error {
		w := s.NewWorker(ctx, scheduler.Name(fmt.Sprint("worker ", i+1)))
		return post(ctx, w, &ledgers[i], cfg.tasks)
	}, async.Limit(atOnce), async.FailFast())
	took := time.Since(begin)
	if cause := context.Cause(ctx); cause != nil {
		err = cause // and not that of a worker that was closed for it
	}
	// The workers have ended. From here on the scheduler leaves the pool alone.
	if drained := s.Drain(context.WithoutCancel(ctx)); err == nil {
		err = drained
	}
	closePool()
	if err != nil {
		return result{}, err
	}
	r := result{took: took, submissions: submitted.n.Load()}
	for i := range ledgers {
		r.tasks += ledgers[i].ran
		r.faults = append(r.faults, ledgers[i].faults(i+1, cfg.tasks)...)
	}
	return r, nil
}

// post posts the tasks of one worker and waits until they have run.
func post(ctx context.Context, w *scheduler.ExecutorWorker, l *ledger, tasks int) error {
	for i := range tasks {
		if i > 0 && i%window == 0 {
			if err := w.Wait(ctx); err != nil {
				return err
			}
		}
		if err := w.Post(func() { l.task(i) }); err != nil {
			return err
		}
	}
	return w.Wait(ctx)
}

// A ledger is what the tasks of one worker have seen. Nothing is locked: that
// is the point. Only what tells of an overlap has to stand one.
type ledger struct {
	ran      int
	wrong    int // tasks that came before their turn, or after
	busy     atomic.Bool
	overlaps atomic.Int64
}

// task is the worker's task number i.
func (l *ledger) task(i int) {
	if l.busy.Swap(true) {
		l.overlaps.Add(1)
	}
	if l.ran != i {
		l.wrong++
	}
	runtime.Gosched() // if another task could come in, it would now
	l.ran++
	l.busy.Store(false)
}

// faults says what is wrong with a worker that was given so many tasks.
func (l *ledger) faults(worker, tasks int) (faults []string) {
	for _, f := range []struct {
		count int
		what  string
	}{
		{max(tasks-l.ran, 0), "did not run"},
		{max(l.ran-tasks, 0), "ran twice"},
		{l.wrong, "ran out of order"},
		{int(l.overlaps.Load()), "began while another ran"},
	} {
		if f.count != 0 {
			faults = append(faults, fmt.Sprintf("worker %d: %d of %d tasks %s", worker, f.count, tasks, f.what))
		}
	}
	return faults
}
