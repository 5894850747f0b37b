package scheduler

import (
	"context"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/async"
)

// An Executor is a pool of goroutines. Execute runs task on one of them, may
// block until it can, and may refuse with an error; it must not panic. If it
// has a method
//
//	TryExecute(task func()) bool
//
// too, that must neither block nor run the task itself: false means "not now",
// and the task is not run.
// With it workers are handed to the pool without a goroutine that waits, and
// share their goroutines with the other users of the pool after each [Batch]. And a
// task may wait for another worker of its scheduler though the pool is full: while it
// does, a goroutine of the scheduler stands in for the one that waits.
type Executor = async.Executor

type tryExecutor interface {
	TryExecute(task func()) bool
}

// ExecutorFunc is an Executor that has nothing but Execute: the method of a pool that submits.
//
//	s := scheduler.New(scheduler.ExecutorFunc(pool.Submit)) // a pool of ants
type ExecutorFunc func(task func()) error

// Execute calls f.
func (f ExecutorFunc) Execute(task func()) error { return f(task) }

// Goroutines is the pool without a limit: every task has a goroutine.
//
//	s := scheduler.New(scheduler.Goroutines())
func Goroutines() Executor { return goroutines{} }

type goroutines struct{}

func (goroutines) Execute(task func()) error { go task(); return nil }

func (goroutines) TryExecute(task func()) bool { go task(); return true }

// Inline runs tasks on the goroutine that schedules them, for tests.
//
//	w := scheduler.New(scheduler.Inline()).NewWorker(ctx)
//	err := w.Post(f) // f has run
//
// # Details
//
// If another goroutine runs tasks of the worker already, that one runs these next. So
// scheduling blocks as long as the tasks take, but no longer than 64 runs of periodic
// tasks: what is left then runs on a goroutine of its own. So does what is left by a task
// that panics or calls runtime.Goexit, which it does to the goroutine that scheduled it.
func Inline() Executor { return inline{} }

type inline struct{}

func (inline) Execute(task func()) error { task(); return nil }

// Limited is a pool of as many goroutines as sem has room for.
//
//	s := scheduler.New(scheduler.Limited(semaphore.NewWeighted(4)))
//
// # Details
//
// A nil sem panics.
func Limited(sem *semaphore.Weighted) Executor {
	if sem == nil {
		panic("scheduler: Limited(nil): make one with semaphore.NewWeighted")
	}
	return limited{sem}
}

type limited struct{ sem *semaphore.Weighted }

func (l limited) Execute(task func()) error {
	if err := l.sem.Acquire(context.Background(), 1); err != nil {
		return err
	}
	l.run(task)
	return nil
}

func (l limited) TryExecute(task func()) bool {
	if !l.sem.TryAcquire(1) {
		return false
	}
	l.run(task)
	return true
}

func (l limited) run(task func()) {
	go func() {
		defer l.sem.Release(1)
		task()
	}()
}

// Errgroup runs tasks on the goroutines of g, within its limit if it has one.
//
//	s := scheduler.New(scheduler.Errgroup(g))
//
// # Details
//
// A nil g panics.
func Errgroup(g *errgroup.Group) Executor {
	if g == nil {
		panic("scheduler: Errgroup(nil): pass the group whose goroutines to use")
	}
	return group{g}
}

type group struct{ g *errgroup.Group }

func (g group) Execute(task func()) error {
	g.g.Go(func() error { task(); return nil })
	return nil
}

func (g group) TryExecute(task func()) bool {
	return g.g.TryGo(func() error { task(); return nil })
}
