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

func openAnts(size int) (scheduler.Executor, func(), error) {
	p, err := ants.NewPool(size)
	if err != nil {
		return nil, nil, err
	}
	return onAnts(p), func() { _ = p.ReleaseContext(context.Background()) }, nil
}

func openPond(size int) (scheduler.Executor, func(), error) {
	p := pond.NewPool(size)
	return onPond{p}, p.StopAndWait, nil
}

func openConc(size int) (scheduler.Executor, func(), error) {
	p := concpool.New().WithMaxGoroutines(size)
	return onConc(p), p.Wait, nil
}

func openErrgroup(size int) (scheduler.Executor, func(), error) {
	g := new(errgroup.Group)
	g.SetLimit(size)
	return onErrgroup(g), func() { _ = g.Wait() }, nil
}

func openSemaphore(size int) (scheduler.Executor, func(), error) {
	n := int64(size)
	sem := semaphore.NewWeighted(n)
	return onSemaphore(sem), func() { _ = sem.Acquire(context.Background(), n) }, nil
}
