package scheduler

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// defaultBatch is how many tasks of a worker run before its goroutine is offered
// back to the pool.
const defaultBatch = 64

// An Option changes a scheduler. Every [WorkerOption] is one: it holds for the
// workers that do not say otherwise.
type Option interface{ applyScheduler(*schedulerOptions) }

// A WorkerOption changes a worker.
type WorkerOption interface {
	Option
	applyWorker(*workerOptions)
}

type schedulerOptions struct {
	workerOptions
	pool context.Context
}

type workerOptions struct {
	name         string
	batch        int
	slice        time.Duration // 0: none
	capacity     int           // 0: none
	full         Full
	recovered    func(*async.PanicError) // nil: panics go on
	closeOnPanic bool
	observer     func(Event)
}

type schedulerOption func(*schedulerOptions)

func (o schedulerOption) applyScheduler(s *schedulerOptions) { o(s) }

type workerOption func(*workerOptions)

func (o workerOption) applyScheduler(s *schedulerOptions) { o(&s.workerOptions) }
func (o workerOption) applyWorker(w *workerOptions)       { o(w) }

// PoolContext tells the scheduler when the pool ends: when ctx is done, tasks that have
// not started are rejected with the cause, and the workers are closed.
//
//	s := scheduler.New(pool, scheduler.PoolContext(poolCtx))
//
// # Details
//
// A pool that drops tasks that it has accepted must be told of in this way, or the
// workers wait for it.
func PoolContext(ctx context.Context) Option {
	if ctx == nil {
		panic("scheduler: PoolContext(nil): pass the context that ends with the pool")
	}
	return schedulerOption(func(o *schedulerOptions) { o.pool = ctx })
}

// Name names a worker in errors and events.
//
//	w := s.NewWorker(ctx, scheduler.Name("mail"))
func Name(name string) WorkerOption { return workerOption(func(o *workerOptions) { o.name = name }) }

// Batch sets how many tasks of a worker may run, 64 if nothing is said, before it offers
// its goroutine back to the pool.
//
//	s := scheduler.New(pool, scheduler.Batch(8))
//
// # Details
//
// Tasks that were cancelled late count, too. With 1 workers take turns task by task.
// n < 1 panics.
func Batch(n int) WorkerOption {
	if n < 1 {
		panic("scheduler: Batch(n): n must be at least 1")
	}
	return workerOption(func(o *workerOptions) { o.batch = n })
}

// Slice has a worker offer its goroutine back when its tasks have run for d, too.
//
//	s := scheduler.New(pool, scheduler.Slice(10*time.Millisecond))
//
// # Details
//
// Slice costs reading the clock for each task. d <= 0: no slice.
func Slice(d time.Duration) WorkerOption {
	return workerOption(func(o *workerOptions) { o.slice = max(d, 0) })
}

// Full says what scheduling does when a queue is at its capacity.
type Full uint8

// The policies when a queue is full.
const (
	Block      Full = iota // wait for room, first come first served, or until the worker is closed
	Fail                   // return ErrFull
	DropOldest             // reject the task that would start next
	DropNewest             // accept the new task and reject it at once
)

// Capacity bounds how many tasks of a worker may be pending: queued, delayed or periodic.
//
//	w := s.NewWorker(ctx, scheduler.Capacity(1000, scheduler.Fail))
//
// # Details
//
// A task that is cancelled gives its place up at once. A periodic one does while it runs,
// and has a place again after, beyond n if need be. Do not use Block for a worker whose
// tasks schedule on it: when it is full they wait for themselves. n < 1 panics.
func Capacity(n int, full Full) WorkerOption {
	if n < 1 {
		panic("scheduler: Capacity(n): n must be at least 1; leave the option out for no limit")
	}
	if full > DropNewest {
		panic("scheduler: Capacity: full must be Block, Fail, DropOldest or DropNewest")
	}
	return workerOption(func(o *workerOptions) { o.capacity, o.full = n, full })
}

// RecoverPanics has panics of tasks recovered and told to f, on the goroutine of the
// task; the worker goes on with the next.
//
//	w := s.NewWorker(ctx, scheduler.RecoverPanics(func(p *async.PanicError) { log.Print(p) }))
//
// # Details
//
// Without RecoverPanics the worker hands on what is left and the panic continues. A nil f
// panics.
func RecoverPanics(f func(*async.PanicError)) WorkerOption {
	if f == nil {
		panic("scheduler: RecoverPanics(nil): leave the option out and panics continue")
	}
	return workerOption(func(o *workerOptions) { o.recovered = f })
}

// CloseOnPanic closes a worker whose task has panicked: what is pending is cancelled.
//
//	w := s.NewWorker(ctx, scheduler.CloseOnPanic())
//
// # Details
//
// The panic continues, or is told, as without CloseOnPanic.
func CloseOnPanic() WorkerOption {
	return workerOption(func(o *workerOptions) { o.closeOnPanic = true })
}

// An Event is the outcome of a task.
type Event struct {
	Worker  string
	Outcome State         // Done, or another outcome
	Queued  time.Duration // from scheduling, or from its deadline, to its start; 0 if it never ran
	Ran     time.Duration
	Err     error // of a rejected or cancelled task: why
}

// Observe has f told of every outcome, and of every tick of a periodic task with Outcome
// Pending.
//
//	w := s.NewWorker(ctx, scheduler.Observe(func(e scheduler.Event) { log.Print(e.Worker, " ", e.Outcome) }))
//
// # Details
//
// f is called after the task, on whichever goroutine decided the outcome, with no lock
// held, and must not block: the worker waits for it. Events of different goroutines come
// in any order. Observe costs reading the clock three times for each task. A nil f
// panics.
func Observe(f func(Event)) WorkerOption {
	if f == nil {
		panic("scheduler: Observe(nil)")
	}
	return workerOption(func(o *workerOptions) { o.observer = f })
}
