package scheduler

import (
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// Errors of scheduling. Test for them with [errors.Is].
var (
	// ErrClosed is returned by a worker that is closed or draining, or whose ctx
	// is done. It is also the cause with which Close cancels the contexts of its
	// tasks, and the outcome of futures whose task it cancelled; if the end of the
	// worker's ctx or of the pool has closed it, that has a cause of its own.
	ErrClosed = errors.New("scheduler: worker closed")

	// ErrCancelled is the cause with which a task's context is cancelled by
	// [Task.Cancel], and the outcome of futures that CancelPending has cancelled.
	ErrCancelled = errors.New("scheduler: cancelled")

	// ErrFull is returned by a worker whose queue is at its [Capacity].
	ErrFull = errors.New("scheduler: queue full")

	// ErrSelfWait is returned by a wait for a worker, or for a future of Submit on it,
	// with the ctx of one of its tasks, or one derived from that: it could never end. A
	// wait that leads back through other workers returns async.ErrAwaitCycle.
	ErrSelfWait = errors.New("scheduler: a worker's task may not wait for the worker")

	// errPanicked closes a worker of CloseOnPanic. It is an ErrClosed.
	errPanicked = fmt.Errorf("%w by a panic of its task", ErrClosed)
)

// A RejectedError is why tasks were rejected: the pool refused their worker, or
// has ended. Worker is the name of that. It is the same type as that of package
// async.
type RejectedError = async.RejectedError

// An undoneError says that tasks that should have run never will.
type undoneError struct {
	worker string
	tasks  int
	err    error // why
}

func (e *undoneError) Error() string {
	are := "tasks were"
	if e.tasks == 1 {
		are = "task was"
	}
	why := e.err
	text := "%v"
	if rejected, ok := why.(*RejectedError); ok && rejected.Worker == e.worker { // it names the worker, too
		why, text = rejected.Err, "rejected by the pool: %v"
	}
	return fmt.Sprintf("scheduler: %s: %d %s left undone: "+text, e.worker, e.tasks, are, why)
}

func (e *undoneError) Unwrap() error { return e.err }
