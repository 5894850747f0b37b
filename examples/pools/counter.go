package main

import (
	"sync/atomic"

	"github.com/ambit-go/ambit/scheduler"
)

// A counter stands before a pool and counts what that is given.
type counter struct {
	ex scheduler.Executor
	n  atomic.Int64
}

// newCounter returns a counter before ex and the executor to use. The executor has a TryExecute
// if ex has one: whoever wraps an executor has to mind that.
func newCounter(ex scheduler.Executor) (*counter, scheduler.Executor) {
	c := &counter{ex: ex}
	if try, ok := ex.(tryExecutor); ok {
		return c, tryCounter{c, try}
	}
	return c, c
}

// Execute passes task on.
func (c *counter) Execute(task func()) error {
	err := c.ex.Execute(task)
	if err == nil {
		c.n.Add(1)
	}
	return err
}

type tryExecutor interface {
	TryExecute(task func()) bool
}

// A tryCounter is a counter before a pool that has a try.
type tryCounter struct {
	*counter
	try tryExecutor
}

// TryExecute passes task on if the pool takes it now.
func (c tryCounter) TryExecute(task func()) bool {
	taken := c.try.TryExecute(task)
	if taken {
		c.n.Add(1)
	}
	return taken
}
