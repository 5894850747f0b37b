package taskqueue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

var (
	// ErrNotFound says that the store knows no such task.
	ErrNotFound = errors.New("taskqueue: there is no such task")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("taskqueue: the store is closed")
	// ErrLeaseLost is the cause of the context of a task whose lease has run out
	// before the store could be asked for more, or that another worker has by now.
	ErrLeaseLost = errors.New("taskqueue: the lease of the task is lost")
	// ErrCancelled is the cause of the context of a task that Cancel has stopped.
	ErrCancelled = errors.New("taskqueue: the task was cancelled")
	// ErrUnknown is in the error of an Enqueue or EnqueueAll that was sent, and whose answer
	// was lost or not waited for: the tasks were added, or not. Repeat the call with the
	// same IDs to know.
	ErrUnknown = errors.New("taskqueue: it is not known whether the tasks were added")
	// ErrOtherDatabase says that the transaction which EnqueueTx was given is not one of the
	// database of the store: the tasks would be where no worker looks.
	ErrOtherDatabase = errors.New("taskqueue: the transaction is of another database than the store")
	// ErrSelfWait says that a handler waits for the end of its own task, which ends after
	// the handler.
	ErrSelfWait = errors.New("taskqueue: a handler cannot wait for its own task to end")
	// ErrStopping is the cause of the context of a task whose worker stops.
	ErrStopping = errors.New("taskqueue: the worker stops")
)

// An InvalidError says what is wrong with a request, and what to do. Nothing was
// changed.
type InvalidError struct {
	What string // the field or argument
	Why  string // what is wrong and what to do
}

func (e *InvalidError) Error() string { return fmt.Sprintf("taskqueue: %s: %s", e.What, e.Why) }

func invalid(what, format string, args ...any) error {
	return &InvalidError{what, fmt.Sprintf(format, args...)}
}

// An aboutError says what another error is about, and names the package once.
type aboutError struct {
	what string
	err  error
}

func about(err error, what, name string) error { return &aboutError{what + " " + name, err} }

func (e *aboutError) Error() string {
	return "taskqueue: " + e.what + ": " + strings.TrimPrefix(e.err.Error(), "taskqueue: ")
}

func (e *aboutError) Unwrap() error { return e.err }

// The errors that these functions make are for handlers, which return them, wrapped or
// not. If there are several in one error the outermost counts. A time is cut to what
// is from 0 to [MaxDelay].

// RetryAfter is for handlers: err is a failure, and the next run comes after d; the
// last of MaxFailures makes a dead letter. A nil err is returned as it is.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &directed{kind: store.Failed, after: max(d, 0), timed: true, err: err}
}

// Dead is for handlers: err makes the task a dead letter, without further runs, though
// [Queue.Retry] can have it run again. It counts as a failure. A nil err is returned as
// it is.
func Dead(err error) error {
	if err == nil {
		return nil
	}
	return &directed{kind: store.Buried, err: err}
}

// Release is for handlers: the task is given back because of err, for another
// worker to try. No attempt is spent. The wait grows from 1 s to 1 min with each time
// in a row. Release(nil) gives it back, too, with no reason.
func Release(err error) error { return &directed{kind: store.Released, err: err} }

// Snooze is for handlers: the task is to run again after d, which is no failure. No
// attempt is spent. Its result is not kept.
func Snooze(d time.Duration) error {
	return &directed{kind: store.Snoozed, after: max(d, 0), timed: true}
}

// directed is an error of a handler that says what is to become of its task.
type directed struct {
	kind  store.OutcomeKind
	after time.Duration
	timed bool // after is meant, 0 too
	err   error
}

func (e *directed) Error() string {
	switch {
	case e.kind == store.Snoozed:
		return fmt.Sprintf("taskqueue: run again after %v", e.after)
	case e.err == nil:
		return "taskqueue: given back"
	}
	return e.err.Error()
}

func (e *directed) Unwrap() error { return e.err }
