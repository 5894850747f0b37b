//go:build explore

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/explore"
	"github.com/ambit-go/ambit/scheduler"
)

// TestExplore runs programs that are made by chance in orders that are, too,
// and holds them to what is true of every program.
func TestExplore(t *testing.T) {
	explore.Run(t, explore.Config{}, exploreWorkload)
}

var errPlannedEnd = errors.New("planned")

func exit() { runtime.Goexit() }

func exploreWorkload(w *explore.World) {
	l := makeWorkload(w.Rand())
	w.Describe(l)
	b := &bench{w: w, l: l, running: make([]int, len(l.workers)), last: make(map[[2]int]int)}
	w.AtEnd(b.check)
	ex, p := l.executor()
	if p != nil {
		w.AtEnd(func() error {
			if p.free != l.places {
				return fmt.Errorf("a pool of %d has %d free places in the end", l.places, p.free)
			}
			return nil
		})
	}
	s := scheduler.New(ex, scheduler.RecoverPanics(func(*async.PanicError) {}))
	if l.scoped {
		b.scope(s)
	} else {
		b.open(s, context.Background())
		_ = async.Scope(context.Background(), func(ctx context.Context) error {
			b.clients(ctx)
			b.end(s) // beside clients
			return nil
		})
	}
	b.end(s)
	if w.Elapsed() > time.Second {
		w.Failf("it took %v", w.Elapsed())
	}
}

// scope runs the clients in the scope that the workers belong to.
func (b *bench) scope(s *scheduler.Scheduler) {
	var opts []async.ScopeOption
	if b.l.limit > 0 {
		opts = append(opts, async.Timeout(b.l.limit))
	}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		b.open(s, ctx)
		b.clients(ctx)
		if b.l.fails {
			return errPlannedEnd
		}
		return nil
	}, opts...)
	for i, w := range b.workers {
		if st := w.Stats(); st.Pending != 0 || st.Running || !w.Closed() {
			b.w.Failf("a scope has returned before its worker %d ended: %+v", i, st)
		}
	}
}

// open makes the workers.
func (b *bench) open(s *scheduler.Scheduler, ctx context.Context) {
	for i, spec := range b.l.workers {
		opts := []scheduler.WorkerOption{scheduler.Name(fmt.Sprint("worker ", i)), scheduler.Batch(spec.batch)}
		if spec.capacity > 0 {
			opts = append(opts, scheduler.Capacity(spec.capacity, spec.full))
		}
		if spec.slice {
			opts = append(opts, scheduler.Slice(time.Millisecond))
		}
		if spec.closeOnPanic {
			opts = append(opts, scheduler.CloseOnPanic())
		}
		b.workers = append(b.workers, s.NewWorker(ctx, opts...))
	}
}

// clients runs them in the scope of ctx, the last one on the calling goroutine.
func (b *bench) clients(ctx context.Context) {
	last := len(b.l.clients) - 1
	for c := range last {
		async.Go(ctx, func(ctx context.Context) error { b.client(ctx, c); return nil })
	}
	b.client(ctx, last)
}

func (b *bench) client(ctx context.Context, c int) {
	for i, a := range b.l.clients[c] {
		b.act(ctx, &job{worker: a.worker, client: c, index: i + 1, body: a.body}, a)
	}
}

// act does one thing.
func (b *bench) act(ctx context.Context, j *job, a action) {
	w := b.workers[a.worker]
	task := func(ctx context.Context) { b.run(j, ctx) }
	keep := func(t scheduler.Task, err error) {
		if err == nil {
			b.locked(func() { j.task = &t; b.jobs = append(b.jobs, j) })
		}
	}
	switch a.what {
	case doPost:
		j.ordered = true
		_ = w.Post(func() { b.run(j, nil) })
	case doPostAll:
		j.ordered = true
		second := *j
		_, _ = w.PostAll(slices.Values([]func(){func() { b.run(j, nil) }, func() { b.run(&second, nil) }}))
	case doSchedule:
		j.ordered = true
		keep(w.Schedule(task))
	case doAfter:
		keep(w.ScheduleAfter(a.d, task))
	case doEvery:
		j.periodic = true
		keep(w.ScheduleEvery(a.d, time.Millisecond, task))
	case doHour:
		keep(w.ScheduleAfter(time.Hour, task))
	case doCancel:
		b.cancel(a.n)
	case doCancelPending:
		w.CancelPending()
	case doSubmit:
		f := scheduler.Submit(w, b.value(j))
		if a.n%2 == 0 {
			b.settled(f.Await(context.WithoutCancel(ctx), a.d))
		}
		b.locked(func() { b.checks = append(b.checks, func() error { return settledIsRight(f, j) }) })
	case doCall:
		limited, cancel := context.WithTimeout(ctx, time.Duration(1+a.n%2)*time.Millisecond)
		b.settled(scheduler.Call(limited, w, b.value(j)))
		cancel()
	case doWait:
		limited, cancel := context.WithTimeout(ctx, time.Duration(1+a.n%2)*time.Millisecond)
		_ = w.Wait(limited)
		cancel()
	case doClose:
		_ = w.Close()
	case doDrain:
		limited, cancel := context.WithTimeout(ctx, time.Duration(1+a.n%4)*time.Millisecond)
		if w.Drain(limited) == nil {
			if st := w.Stats(); st.Pending != 0 || st.Running {
				b.w.Failf("drained, and there is more: %+v", st)
			}
		}
		cancel()
	case doSleep:
		_ = async.Sleep(ctx, a.d)
	case doStats:
		st := w.Stats()
		running := uint64(0)
		if st.Running {
			running = 1
		}
		if sum := st.Done + st.Cancelled + st.Rejected + st.Panicked + st.Exited + uint64(st.Pending) + running; sum != st.Scheduled {
			b.w.Failf("the counts do not add up: %+v", st)
		}
	}
}

// value is a handler that gives 1.
func (b *bench) value(j *job) func(context.Context) (int, error) {
	if j.body >= panics {
		j.body = returns
	}
	return func(ctx context.Context) (int, error) { b.run(j, ctx); return 1, nil }
}

func (b *bench) settled(v int, err error) {
	if v != 1 && err == nil {
		b.w.Failf("a wait gave neither a value nor an error")
	}
}

// cancel cancels a task that somebody has scheduled.
func (b *bench) cancel(n int) {
	var j *job
	b.locked(func() {
		if len(b.jobs) > 0 {
			j = b.jobs[n%len(b.jobs)]
		}
	})
	if j != nil && j.task.Cancel() {
		b.locked(func() {
			if j.ran > 0 && !j.periodic {
				b.w.Failf("Cancel said that a task never starts, and it has run")
			}
			j.cancelled = !j.periodic
		})
	}
}

// end ends what no scope has ended.
func (b *bench) end(s *scheduler.Scheduler) {
	limited, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	switch b.l.end {
	case 0:
		_ = s.Drain(limited)
	case 1:
		_ = s.Close()
	default:
		for _, w := range b.workers {
			if b.l.end == 2 {
				_ = w.Close()
			} else {
				_ = w.Drain(limited)
			}
		}
	}
	for _, w := range b.workers {
		_ = w.Wait(limited)
	}
}

// check looks at every task when nothing goes on any more.
func (b *bench) check() error {
	for _, j := range b.jobs {
		switch st := j.task.State(); {
		case st <= scheduler.Running:
			return fmt.Errorf("a task is %v in the end", st)
		case j.periodic:
		case st == scheduler.Done && j.ran != 1, (st == scheduler.Cancelled || st == scheduler.Rejected) && j.ran != 0:
			return fmt.Errorf("a task is %v, and ran %d times", st, j.ran)
		}
	}
	for _, w := range b.workers {
		st := w.Stats()
		if sum := st.Done + st.Cancelled + st.Rejected + st.Panicked + st.Exited; sum != st.Scheduled || st.Pending != 0 || st.Running {
			return fmt.Errorf("a worker's counts in the end: %+v", st)
		}
	}
	for _, c := range b.checks {
		if err := c(); err != nil {
			return err
		}
	}
	return nil
}

// settledIsRight checks that f has settled with what j did.
func settledIsRight(f *async.Future[int], j *job) error {
	_, err, ok := f.Result()
	switch {
	case !ok:
		return errors.New("a future has not settled in the end")
	case j.body == callsOn: // what it has called may have been cancelled
	case (err == nil) != (j.ran == 1):
		return fmt.Errorf("a future's error is %v, its handler ran %d times", err, j.ran)
	}
	return nil
}
