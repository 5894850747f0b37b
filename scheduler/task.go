package scheduler

import (
	"context"
	"time"
)

// State is where a task stands.
type State uint32

// The states of a task. The last five are outcomes, of which a task has one,
// once.
const (
	Pending   State = iota // queued, or waiting for its time
	Running                // its function runs
	Done                   // its function has returned; what the zero Task is
	Cancelled              // it never ran, or not again if it is periodic
	Rejected               // it never ran: the pool refused, or the queue was full
	Panicked               // its function panicked
	Exited                 // its function called runtime.Goexit
)

// String returns the name of s in lower case.
func (s State) String() string {
	return [...]string{"pending", "running", "done", "cancelled", "rejected", "panicked", "exited"}[s]
}

// A Task is a handle to what was scheduled. It is comparable and never
// forgets: it tells the outcome for as long as it is held, and holds nothing
// that the task's function has captured. The zero Task has ended.
type Task struct{ n *node }

// Cancel takes t out of the queue: it never starts. Cancel returns true then.
// If t runs its context is cancelled with [ErrCancelled] and Cancel returns
// false; the worker's next task still waits until it has returned. A periodic
// task is not run again either way. Of a task that has ended Cancel returns
// false. It does not block.
func (t Task) Cancel() bool {
	return t.n != nil && t.n.w.cancel(t.n, ErrCancelled)
}

// State returns where t stands.
func (t Task) State() State {
	if t.n == nil {
		return Done
	}
	return t.n.status()
}

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
	w         *ExecutorWorker
	task      func(context.Context)
	plain     func() // instead of task
	state     atomicUint32
	on        whichList                  // guarded by the worker's mu
	timed     bool                       // it is delayed until at
	noContext bool                       // plain is called, not task
	ctx       atomicPointer[taskContext] // while it runs
	future    *submission                // which is told if it does not run
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
	cancel context.CancelCauseFunc
}

func (n *node) status() State { return State(n.state.Load()) }

// claim moves n from pending and reports whether it was that.
func (n *node) claim(to State) bool {
	return n.state.CompareAndSwap(uint32(Pending), uint32(to))
}

// forget drops what n's function has captured.
func (n *node) forget() { n.task, n.plain = nil, nil }
