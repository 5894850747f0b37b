package service

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/async"
)

const (
	statusFailed = 1
	statusPanic  = 2 // that of a program of Go that has panicked
)

// maxErrors is how many errors of a tree are looked at, so one that wraps itself
// does no harm.
const maxErrors = 10_000

// WithStatus returns err with the exit status that a program is to have which ends with it.
//
//	result, err := proc.Run(ctx, step)
//	return service.WithStatus(err, result.Status()) // the program ends as its step did
//
// # Details
//
// The errors of other packages have no status for [Main], those of package proc neither: a helper that fails
// with 3 is not to end the program with 3 unless the program says so. Text and matches are those of err. In the
// tree of an error the first status decides, so who wraps decides before what is wrapped. A status that is not in 1
// to 255, as that of a command that ended with 0 and was stopped, or never started, is none: then it is err itself
// that is returned. WithStatus(nil, status) is nil.
func WithStatus(err error, status int) error {
	if err == nil || status < 1 || status > 255 {
		return err
	}
	return &statusError{err, status}
}

// A statusError is an error with a status.
type statusError struct {
	err    error
	status int
}

func (e *statusError) Error() string   { return textOf(e.err) }
func (e *statusError) Unwrap() error   { return e.err }
func (e *statusError) ExitStatus() int { return e.status }

// status returns the exit status of a program that ends with err, in which signals,
// none, one or more, have come.
func status(err error, signals []*SignalError) (code int) {
	if err == nil {
		return 0
	}
	defer func() {
		if recover() != nil { // in a method of an error
			code = statusFailed
		}
	}()
	left := maxErrors
	if code, ok := own(err, &left); ok {
		if code < 0 || code > 255 { // the system would cut it, perhaps to 0
			return statusFailed
		}
		return code
	}
	if len(signals) > 1 || len(signals) > 0 && errors.Is(err, context.Canceled) {
		return signals[0].ExitStatus()
	}
	return statusFailed
}

// own returns the exit status of the first error in the tree of err that has one:
// a panic has, and what has a method ExitStatus() int.
func own(err error, left *int) (code int, ok bool) {
	if *left--; err == nil || *left < 0 {
		return 0, false
	}
	switch e := err.(type) {
	case *async.PanicError:
		return statusPanic, true
	case interface{ ExitStatus() int }:
		return e.ExitStatus(), true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return own(e.Unwrap(), left)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if code, ok := own(err, left); ok {
				return code, true
			}
		}
	}
	return 0, false
}
