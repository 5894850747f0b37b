package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// Here one goroutine uses a worker, in a bubble. The work of the worker is
// predicted to the last detail by a model without a queue, lock or goroutine.
// A program is decoded from bytes: a seed makes one, a fuzzer makes more, and
// one that fails can be made smaller by leaving bytes out.

type orderRun struct {
	data    []byte
	m       orderModel
	w       *scheduler.ExecutorWorker
	inline  bool
	start   time.Time
	mu      sync.Mutex // guards what follows
	handles map[int]scheduler.Task
	log     []int

	gate  chan struct{} // of the task that is held
	ids   int
	lie   bool
	wrong string
}

func (r *orderRun) next(n int) int {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return int(b) % n
}

func (r *orderRun) fault(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

// worker decodes the worker and tells the model.
func (r *orderRun) worker(ctx context.Context) {
	m := &r.m
	m.tasks = make(map[int]*orderTask)
	r.handles = make(map[int]scheduler.Task)
	opts := []scheduler.WorkerOption{scheduler.Batch(1 + r.next(5))}
	var ex scheduler.Executor
	pool := r.next(5)
	switch pool {
	case 0:
		ex = scheduler.Goroutines()
	case 1:
		ex = scheduler.Limited(semaphore.NewWeighted(1))
	case 2:
		ex = oneSlotRecovering()
	case 3:
		m.refuse = 2 + r.next(5)
		ex = refuseEvery(m.refuse)
	default:
		r.inline = true
		ex = scheduler.Inline()
	}
	if m.recovers = pool != 2 && pool != 3 || r.next(2) == 0; m.recovers {
		opts = append(opts, scheduler.RecoverPanics(func(*async.PanicError) {}))
	}
	if m.closes = r.next(8) == 0; m.closes {
		opts = append(opts, scheduler.CloseOnPanic())
	}
	if r.next(2) == 0 {
		m.capacity = 1 + r.next(6)
		m.full = scheduler.Fail + scheduler.Full(r.next(3))
		opts = append(opts, scheduler.Capacity(m.capacity, m.full))
	}
	switch r.next(4) {
	case 0:
		opts = append(opts, scheduler.Observe(func(scheduler.Event) {}))
	case 1:
		opts = append(opts, scheduler.Slice(time.Millisecond))
	}
	r.start = time.Now()
	r.w = scheduler.New(ex).NewWorker(ctx, opts...)
}

// task decodes a task.
func (r *orderRun) task() *orderTask {
	r.ids++
	it := &orderTask{id: r.ids, act: r.next(3 * actCount)} // two thirds do nothing
	it.arg = time.Duration(1+r.next(5)) * time.Millisecond
	it.target = 1 + r.next(r.ids)
	if it.act == actSleep {
		it.arg += time.Duration(r.ids*r.ids) * time.Microsecond / 16 // so that seldom two things happen at once
	}
	if r.inline && (it.act == actSleep || it.act == actHold || it.act == actExit) {
		it.act = actNothing
	}
	return it
}

// keep keeps the handle of it. The task may run already.
func (r *orderRun) keep(it *orderTask) func(scheduler.Task, error) error {
	return func(task scheduler.Task, err error) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.handles[it.id] = task
		return err
	}
}

func (r *orderRun) handle(id int) scheduler.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handles[id]
}

// body is what it does.
func (r *orderRun) body(it *orderTask) func(context.Context) {
	runs := 0
	return func(context.Context) {
		r.mu.Lock()
		r.log = append(r.log, it.id)
		r.mu.Unlock()
		runs++
		if it.every && runs == it.most {
			r.handle(it.id).Cancel()
		}
		child := &orderTask{id: it.id + 1_000*runs}
		switch it.act {
		case actSleep:
			time.Sleep(it.arg)
		case actHold:
			<-r.gate
		case actPanic:
			panic("on purpose")
		case actExit:
			runtime.Goexit()
		case actChild:
			_, _ = r.w.Schedule(r.body(child))
		case actLater:
			_, _ = r.w.ScheduleAfter(it.arg, r.body(child))
		case actCancel:
			r.handle(it.target).Cancel()
		case actSweep:
			r.w.CancelPending()
		}
	}
}

// step does one thing, to the worker and to the model.
func (r *orderRun) step() {
	m, w := &r.m, r.w
	var err error
	accepted := true
	switch op := r.next(16); op {
	case 0, 1, 2, 3:
		it := r.task()
		accepted = m.schedule(it, 0)
		err = r.keep(it)(w.Schedule(r.body(it)))
	case 4:
		it := r.task()
		it.bare = true
		accepted = m.schedule(it, 0)
		f := r.body(it)
		err = w.Post(func() { f(nil) })
	case 5, 6, 7:
		it := r.task()
		d := time.Duration(1+r.next(6)) * time.Millisecond
		accepted = m.schedule(it, d)
		err = r.keep(it)(w.ScheduleAfter(d, r.body(it)))
	case 8, 9:
		accepted, err = r.every()
	case 10:
		id := 1 + r.next(r.ids+1)
		m.cancel(id)
		r.handle(id).Cancel()
	case 11:
		if r.next(3) == 0 {
			m.sweep()
			w.CancelPending()
		}
	case 12:
		d := time.Duration(r.next(256)) * 37 * time.Microsecond
		m.advance(m.now + d)
		time.Sleep(d)
	case 13, 14:
		if m.running != nil && m.until == 0 {
			m.release()
			r.gate <- struct{}{}
		}
	default:
		switch r.next(20) {
		case 0:
			m.close()
			_ = w.Close()
		case 1:
			m.drain()
			go func() { _ = w.Drain(context.Background()) }()
		}
	}
	if accepted != (err == nil) {
		r.fault("scheduling returned %v", err)
	}
}

func (r *orderRun) every() (accepted bool, err error) {
	it := r.task()
	it.every, it.period = true, time.Duration(r.next(4))*time.Millisecond
	first := time.Duration(1+r.next(4)) * time.Millisecond
	if it.most = r.next(5); it.period == 0 && it.most == 0 {
		it.most = 4
	}
	var opts []scheduler.EveryOption
	if it.delay = r.next(3) == 0; it.delay {
		opts = append(opts, scheduler.FixedDelay())
	}
	if it.burst = r.next(3) == 0; it.burst {
		opts = append(opts, scheduler.Burst())
	}
	accepted = r.m.schedule(it, first)
	return accepted, r.keep(it)(r.w.ScheduleEvery(first, it.period, r.body(it), opts...))
}
