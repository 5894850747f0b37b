package async

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file is what a task with Restart has failed with in the end, and what it is not
// started again for.

// Final makes an error after which a task is not started again and a call is not made
// again; see [Restart] and [Retry]. It is found by [errors.As], so it may be wrapped, and
// a panic of a task with it counts, too. Text and matches are those of err. Elsewhere
// it makes no difference.
// Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// isFinal reports whether err is not to be retried.
func isFinal(err error) bool {
	_, final := echo.As[*finalError](err)
	return final
}

// A RestartError is the outcome of a task with [Restart] that has failed too often,
// or that was told to stop when it had failed before. It matches the last failure
// and, if the task was told to stop, why.
type RestartError struct {
	Failures int   // since the start, or since the last run that was healthy
	Err      error // the last failure; nil if that is the panic that the error stands beside

	task   string
	within time.Duration // in which there were recent of the failures; 0 if that is not why the task has ended
	recent int
	why    error // what has stopped the task; nil if it has failed too often
}

// isCount reports that e says how often the task has failed, and nothing else.
func (e *RestartError) isCount() bool { return e != nil && e.Err == nil && e.why == nil }

// Error tells how often the task has failed, why it has ended, and the last failure.
func (e *RestartError) Error() string {
	if e == nil {
		return nilText(e)
	}
	var text string
	switch {
	case e.why != nil:
		text = "stopped after " + counted(e.Failures, "failure") + ": " + briefly(e.task, e.why)
	case e.recent == e.Failures:
		text = fmt.Sprintf("given up after %s within %v", counted(e.Failures, "failure"), e.within)
	default:
		text = fmt.Sprintf("given up after %s, %d of them within %v", counted(e.Failures, "failure"), e.recent, e.within)
	}
	if e.Err != nil {
		text += "; last failure: " + within(e.task, e.Err)
	}
	return prefix(e.task) + text
}

// Unwrap returns why the task was stopped, if it was, and the last failure.
func (e *RestartError) Unwrap() []error {
	if e == nil {
		return nil
	}
	return notNil(e.why, e.Err)
}

// stoppedBy returns what has stopped the task, nil if it has failed too often, and the
// last failure that it has lived through.
func (e *RestartError) stoppedBy() (why, memory error) {
	if e == nil {
		return nil, nil
	}
	return e.why, e.Err
}
