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
