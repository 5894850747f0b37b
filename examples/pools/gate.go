package main

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ambit-go/ambit/scheduler"
)

var errShut = errors.New("pool is shut")

// A gate stands before a pool. It counts what is submitted and, once it is
// shut, lets nothing through, so that the pool can be waited for: conc and
// errgroup do not allow that while somebody submits. What still comes at that
// time is without work: another goroutine has run the tasks meanwhile.
type gate struct {
	ex     scheduler.Executor
	passed atomic.Int64

	mu     sync.RWMutex // held for reading while something passes
	closed bool         // guarded by mu
}

// newGate returns a gate before ex and the executor to use. That has a
// TryExecute if ex has one.
func newGate(ex scheduler.Executor) (*gate, scheduler.Executor) {
	g := &gate{ex: ex}
	if try, ok := ex.(tryExecutor); ok {
		return g, tryGate{g, try}
	}
	return g, g
}

// Execute passes task on, or returns errShut.
func (g *gate) Execute(task func()) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return errShut
	}
	err := g.ex.Execute(task)
	if err == nil {
		g.passed.Add(1)
	}
	return err
}

// shut blocks until nothing passes any more and returns how much has. The
// workers have to be closed or drained.
func (g *gate) shut() int64 {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	return g.passed.Load()
}

type tryExecutor interface {
	TryExecute(task func()) bool
}

// A tryGate is a gate before a pool that has a try.
type tryGate struct {
	*gate
	try tryExecutor
}

// TryExecute passes task on if the pool takes it now. It does not wait for the
// lock either.
func (g tryGate) TryExecute(task func()) bool {
	if !g.mu.TryRLock() {
		return false
	}
	defer g.mu.RUnlock()
	if g.closed || !g.try.TryExecute(task) {
		return false
	}
	g.passed.Add(1)
	return true
}
