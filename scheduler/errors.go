package scheduler

import (
	"errors"
	"fmt"
)

// Errors of scheduling. Test for them with [errors.Is].
var (
	// ErrClosed is returned by a worker that is closed or draining. It is also
	// the cause with which Close cancels the contexts of its tasks, and the
	// outcome of futures whose task it cancelled; if the end of the worker's
	// ctx or of the pool has closed it, that has a cause of its own.
	ErrClosed = errors.New("scheduler: worker closed")

	// ErrCancelled is the cause with which a task's context is cancelled by
	// [Task.Cancel], and the outcome of futures that CancelPending has cancelled.
	ErrCancelled = errors.New("scheduler: cancelled")

	// ErrFull is returned by a worker whose queue is at its [Capacity].
	ErrFull = errors.New("scheduler: queue full")

	// ErrSelfWait is returned by a wait for a worker with the ctx of one of its
	// tasks, or one derived from that: it could never end.
	ErrSelfWait = errors.New("scheduler: a worker's task may not wait for the worker")
)

// A RejectedError is why tasks were rejected: the pool refused their worker.
type RejectedError struct {
	Worker string
	Err    error // what the pool said, or the cause of its context
}

// Error names the worker and says what the pool said.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("scheduler: %s: rejected by the pool: %v", e.Worker, e.Err)
}

// Unwrap returns what the pool said.
func (e *RejectedError) Unwrap() error { return e.Err }
