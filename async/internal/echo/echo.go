// Package echo tells a failure from an echo: an error that says nothing but that
// its task was told to stop.
//
// It is a pure core, as package tally is, but it calls methods of users' errors.
// So nothing here may be called with a lock held. Methods that panic, and values
// that cannot be compared, do no harm: the error is a failure then.
package echo

import (
	"reflect"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A Stop is why a task was told to stop: what Err and Cause of its context say.
type Stop struct{ Err, Cause error }

// depth is how many errors that wrap one another are looked into. One that wraps
// itself would be looked into for ever.
const depth = 1000

// Known answers for errors whose meaning package async knows: whether err is an
// echo, and whether it knows err at all.
type Known func(err error) (is, known bool)

// Is reports whether err is an echo of stop: whether all that its Unwraps lead
// to is the error or the cause of that context, or is known to be an echo.
func Is(err error, stop Stop, known Known) (is bool) {
	if stop.is(err) {
		return true
	}
	defer func() { _ = recover() }() // of a user's method; is stays false
	for range depth {
		if is, ok := known(err); ok {
			return is
		}
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			return All(e.Unwrap(), stop, known)
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return ofNet(err, stop.Err)
		}
		if err == nil {
			return false
		}
		if stop.is(err) {
			return true
		}
	}
	return false
}

// All reports whether all of errs are echoes of stop, and there is one.
func All(errs []error, stop Stop, known Known) bool {
	for _, err := range errs {
		if !Is(err, stop, known) {
			return false
		}
	}
	return len(errs) > 0
}

// is reports whether err is the error or the cause of the context itself.
func (s Stop) is(err error) bool { return tally.Same(err, s.Err) || tally.Same(err, s.Cause) }

// ofNet reports whether err is of a type of package net whose own Is matches the
// error of a context: its "operation was canceled" wraps nothing.
func ofNet(err, stop error) bool {
	is, ok := err.(interface{ Is(error) bool })
	if !ok {
		return false
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "net" && is.Is(stop)
}
