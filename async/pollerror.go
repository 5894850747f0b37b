package async

import (
	"errors"
	"reflect"

	"github.com/ambit-go/ambit/async/internal/crash"
)

// A PollError is the outcome of a poll, or of [Retry], that ended without an answer. It
// matches the last error and, if the poll was stopped, why.
type PollError[T any] struct {
	Attempts int   // probes made
	Value    T     // the last that a probe returned without an error, or, not being zero, beside an Again
	Err      error // the last error of a probe, nil if there was none

	task string
	why  error // what ended the poll, unless that was Err
}

var errAttempts = errors.New("no attempts left")

// Error tells in one sentence which task has not got an answer after how many
// attempts, what ended it, the last error and the last value.
func (e *PollError[T]) Error() string {
	if e == nil {
		return nilText(e)
	}
	text := prefix(e.task) + "no answer after " + counted(e.Attempts, "attempt")
	if e.why != nil && e.why != errAttempts { // the number tells
		text += ": " + briefly(e.task, e.why)
	}
	if e.Err != nil {
		text += "; last error: " + within(e.task, e.Err)
	}
	if v := reflect.ValueOf(e.Value); v.IsValid() && !v.IsZero() {
		text += "; last value: " + indented(crash.Text(e.Value))
	}
	return text
}

// stoppedBy returns what stopped the poll, nil if it was not stopped, and the last
// error that it has lived through, if err is e; see stoppable.
func (e *PollError[T]) stoppedBy(err error) (why, memory error, ours bool) {
	if e == nil {
		return nil, nil, true
	}
	return e.why, e.Err, err == error(e)
}

// Unwrap returns why the poll was stopped and the last error.
func (e *PollError[T]) Unwrap() []error {
	if e == nil {
		return nil
	}
	return notNil(e.why, e.Err)
}
