package main

import (
	"context"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	concpool "github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/scheduler"
)

// This file is what stands between the scheduler and a pool, for each pool.
//
// An executor has to have Execute, which may block until the pool has room, and
// may refuse with an error: the tasks that wait for it are rejected then. It may
// have TryExecute, which must not block; its false means "not now", and what it
// was given must never run. With TryExecute a worker goes to the end of the
// pool's line after each batch. Without it the scheduler keeps a goroutine of
// the pool for as long as any of its workers has something to do, so other
// users of the pool get less of it.

// A pool is one kind of pool. open makes one of size goroutines; close blocks
// until all they run has ended.
type pool struct {
	name string
	open func(size int) (ex scheduler.Executor, close func(), err error)
}

var allPools = []pool{
	{"ants", openAnts},
	{"pond", openPond},
	{"conc", openConc},
	{"errgroup", openErrgroup},
	{"semaphore", openSemaphore},
}

// onAnts runs workers on a pool of ants.
//
// Submit blocks while the pool is full, as Execute may. Do not make the pool
// with ants.WithNonblocking: Submit then refuses when the pool is full, and
// tasks are rejected. No call of a blocking pool is a try: Free tells of room
// that may be gone by the next line. So there is no TryExecute.
//
// ants recovers a panic of a task and prints it, or tells WithPanicHandler. To
// import ants starts two goroutines, which matters to leak checks; ants.Release
// ends them.
func onAnts(pool *ants.Pool) scheduler.Executor { return scheduler.ExecutorFunc(pool.Submit) }

func openAnts(size int) (scheduler.Executor, func(), error) {
	p, err := ants.NewPool(size)
	if err != nil {
		return nil, nil, err
	}
	return onAnts(p), func() { _ = p.ReleaseContext(context.Background()) }, nil
}

// onPond runs workers on a pool of pond.
//
// Its queue is unbounded unless there is a pond.WithQueueSize; with that, Go
// blocks when the queue is full and TrySubmit does not: both are right. Do not
// make the pool with pond.WithNonBlocking: Go then refuses, and tasks are
// rejected. After Stop both refuse.
//
// pond recovers a panic of a task and keeps it in a future that nobody looks
// at here: nothing is printed. Use scheduler.RecoverPanics to hear of it, or
// pond.WithoutPanicRecovery.
type onPond struct{ pool pond.Pool }

// Execute may block, if the queue is bounded.
func (p onPond) Execute(task func()) error { return p.pool.Go(task) }

// TryExecute is false if the queue is full or the pool has stopped.
func (p onPond) TryExecute(task func()) bool {
	_, taken := p.pool.TrySubmit(task)
	return taken
}

func openPond(size int) (scheduler.Executor, func(), error) {
	p := pond.NewPool(size)
	return onPond{p}, p.StopAndWait, nil
}

// onConc runs workers on a pool of conc.
//
// Go blocks while WithMaxGoroutines are busy, and there is no try. Go panics
// after Wait, so Drain the scheduler before. A panic of a task is caught, the
// pool goes on, and Wait panics with it at the end.
func onConc(pool *concpool.Pool) scheduler.Executor {
	return scheduler.ExecutorFunc(func(task func()) error {
		pool.Go(task)
		return nil
	})
}

func openConc(size int) (scheduler.Executor, func(), error) {
	p := concpool.New().WithMaxGoroutines(size)
	return onConc(p), p.Wait, nil
}

// onErrgroup runs workers on the goroutines of an errgroup.
//
// Go blocks while SetLimit goroutines run, TryGo does not. Wait may not be
// called while something may still be started, so Drain the scheduler before. A
// panic of a task ends the process, unless there is a scheduler.RecoverPanics.
func onErrgroup(g *errgroup.Group) scheduler.Executor { return scheduler.Errgroup(g) }

func openErrgroup(size int) (scheduler.Executor, func(), error) {
	g := new(errgroup.Group)
	g.SetLimit(size)
	return onErrgroup(g), func() { _ = g.Wait() }, nil
}

// onSemaphore starts a goroutine for each submission, as many as sem has room
// for, and shares that room with whoever else acquires it. There is no pool to
// wait for or to close. A panic of a task ends the process, unless there is a
// scheduler.RecoverPanics.
func onSemaphore(sem *semaphore.Weighted) scheduler.Executor { return scheduler.Limited(sem) }

func openSemaphore(size int) (scheduler.Executor, func(), error) {
	n := int64(size)
	sem := semaphore.NewWeighted(n)
	return onSemaphore(sem), func() { _ = sem.Acquire(context.Background(), n) }, nil
}
