package async

import (
	"context"
	"reflect"
)

// This file tells a failure from the echo of a cancellation.

// isEcho reports whether every leaf of err is the error or the cause of the
// context that sg stopped: whether err says nothing but "I was told to stop".
func isEcho(err error, sg *stopError) bool {
	if sg == nil {
		return false
	}
	if same(err, sg.err) || same(err, sg.cause) {
		return true
	}
	if e, ok := err.(interface{ reason() error }); ok && e.reason() != nil {
		return isEcho(e.reason(), sg) // a poll
	}
	switch e := err.(type) {
	case *TimeoutError, *PanicError:
		return false // somebody else's, or ours and found above
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return isEcho(inner, sg)
		}
	case interface{ Unwrap() []error }:
		inner := e.Unwrap()
		for _, err := range inner {
			if !isEcho(err, sg) {
				return false
			}
		}
		if len(inner) > 0 {
			return true
		}
	}
	// Package net's own "operation was canceled" is a leaf that says so in Is.
	is, ok := err.(interface{ Is(error) bool })
	return ok && fromNet(err) && is.Is(sg.err)
}

// fromNet reports whether err is of a type of package net.
func fromNet(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "net"
}

// same compares errors by identity, and those of types that have none, such as
// slices, by what they hold.
func same(a, b error) bool {
	if a == context.Canceled || b == context.Canceled {
		return a == b // most often, and measured, the rest grows the stack of small tasks
	}
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	if a == nil || reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() {
		return a == b
	}
	return reflect.DeepEqual(a, b)
}
