package scheduler

import (
	"context"
	"time"
)

// whichList says what of a queue a node is on.
type whichList uint8

const (
	onNothing whichList = iota // it has ended, or was not accepted yet
	onList                     // it is queued, or in the batch
	onHeap                     // it is not due yet
)

// A node is a task that somebody has a handle to, or is to be told of. Its outcome
// is decided by the one goroutine that moves its state from pending. A node is
// used once, so that a handle stays true.
type node struct {
	q         *queue // of the worker that it belongs to
	task      func(context.Context)
	plain     func() // instead of task
	state     atomicUint32
	on        whichList                  // guarded by the worker's mu
	timed     bool                       // it is delayed until at
	noContext bool                       // plain is called, not task
	ctx       atomicPointer[taskContext] // while it runs
	future    *ticket                    // which is told if it does not run
	period    *period                    // nil if it runs once
	chunk     *chunk                     // where it is queued; guarded by the worker's mu
	index     int                        // in that, or in the heap; guarded by the worker's mu
	seq       uint64                     // orders it among equal deadlines; 0 until it is accepted
	at        time.Duration              // its deadline, on our clock
	stamp     time.Duration              // when it was queued, if observed; else when it was scheduled
}

// taskContext is the context of a running task.
type taskContext struct {
	context.Context
	n      *node
	cancel context.CancelCauseFunc
}

func (n *node) status() State { return State(n.state.Load()) }

// claim moves n from pending and reports whether it was that.
func (n *node) claim(to State) bool {
	return n.state.CompareAndSwap(uint32(Pending), uint32(to))
}

// forget drops what n's function has captured.
func (n *node) forget() { n.task, n.plain = nil, nil }
