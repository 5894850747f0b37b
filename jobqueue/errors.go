package jobqueue

import "errors"

// Errors of a queue. Test for them with [errors.Is].
var (
	// ErrNoScope is returned by Take and the like if their ctx carries no
	// scope: there would be nothing whose end settles the jobs.
	ErrNoScope = errors.New("jobqueue: no scope to take jobs in: call it with the ctx of async.Scope or of a task, or use Do")

	// ErrClosed is returned by takes from a queue that is closed or has been
	// drained, and by Drain if closing the queue has kept jobs from being
	// taken. It is why such a queue, or one that drains, rejects a job.
	ErrClosed = errors.New("jobqueue: queue closed")

	// ErrSelfWait is returned by Drain if its ctx belongs to a scope that holds
	// jobs of the queue, or that is inside one: it could never end.
	ErrSelfWait = errors.New("jobqueue: a scope that holds jobs of a queue may not wait for the queue to drain")

	// ErrDuplicate is why a job was rejected: one with its key is known.
	ErrDuplicate = errors.New("jobqueue: duplicate job")

	// ErrFull is why a job was rejected: the queue is at its [Capacity].
	ErrFull = errors.New("jobqueue: queue full")

	// ErrKey is why a job was rejected: its key cannot be found again, because
	// it does not equal itself (NaN) or cannot be compared (a slice in an
	// interface).
	ErrKey = errors.New("jobqueue: the key is not comparable, or not equal to itself")
)
