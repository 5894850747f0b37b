// Package echo tells a failure from an echo: an error that says nothing but that
// its task was told to stop.
//
// It is a pure core, as package tally is, but it calls methods of users' errors.
// So nothing here may be called with a lock held. Methods that panic, and values
// that cannot be compared, do no harm: the error is a failure then.
package echo

import (
	"reflect"
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A Stop is why a task was told to stop: what Err and Cause of its context say.
type Stop struct{ Err, Cause error }

// depth is how many errors that wrap one another are looked into. One that wraps
// itself would be looked into for ever.
const depth = 1000

// A Saying is what an error of package async says.
type Saying struct {
	Cause error   // that something was stopped for this; nil: it does not say that
	Errs  []error // what each of these says
	Rest  []error // what else it holds, which does not count for [Is]
	More  bool    // something of its own
}

// Ours returns what err says, if it is an error of package async. Nothing that such errors wrap is
// looked into besides.
type Ours func(err error) (says Saying, ours bool)

// Is reports whether err is an echo of stop: whether all that its Unwraps lead
// to is the error or the cause of that context, or an error of ours that says no
// more than that.
func Is(err error, stop Stop, ours Ours) (is bool) {
	if stop.is(err) {
		return true
	}
	defer func() { _ = recover() }() // of a user's method; is stays false
	for range depth {
		if says, ok := ours(err); ok {
			return says.only(stop, ours)
		}
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			return all(e.Unwrap(), stop, ours)
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

// all reports whether all of errs are echoes of stop, and there is one.
func all(errs []error, stop Stop, ours Ours) bool {
	for _, err := range errs {
		if !Is(err, stop, ours) {
			return false
		}
	}
	return len(errs) > 0
}

// only reports whether all that s says is an echo of stop.
func (s Saying) only(stop Stop, ours Ours) bool {
	switch {
	case s.More, s.Cause != nil && !tally.Same(s.Cause, stop.Cause):
		return false
	case s.Cause != nil && len(s.Errs) == 0:
		return true
	}
	return all(s.Errs, stop, ours)
}

// Bare reports whether err says nothing at all that stop does not: it is the error of
// the context, its cause or what that wraps, or an error of ours that holds only such.
// Another echo says more, in words of its own: "while reading page 7: context canceled".
func Bare(err error, stop Stop, ours Ours) bool {
	says, ok := ours(err)
	if !ok || stop.is(err) {
		return stop.is(err) || Matches(stop.Cause, err)
	}
	if says.More || says.Cause != nil && !tally.Same(says.Cause, stop.Cause) {
		return Matches(stop.Cause, err)
	}
	for _, err := range slices.Concat(says.Errs, says.Rest) {
		if err != nil && !Bare(err, stop, ours) {
			return false
		}
	}
	return says.Cause != nil || len(says.Errs) > 0
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

// Matches is errors.Is for errors of users. It comes to an end if one wraps itself.
func Matches(err, target error) (is bool) {
	defer func() { _ = recover() }() // of a user's method, or of values that cannot be compared
	left := depth
	same := target != nil && reflect.TypeOf(target).Comparable()
	return find(err, &left, func(e error) bool {
		if same && e == target {
			return true
		}
		m, ok := e.(interface{ Is(error) bool })
		return ok && m.Is(target)
	})
}

// As is errors.As for errors of users, with its own limits as in Matches.
func As[T error](err error) (found T, ok bool) {
	defer func() { _ = recover() }()
	left := depth
	ok = find(err, &left, func(e error) bool {
		if t, is := e.(T); is {
			found = t
			return true
		}
		m, is := e.(interface{ As(any) bool })
		return is && m.As(&found)
	})
	return found, ok
}

// find reports whether f says true of err, or of one of the errors that it wraps, in
// the order of errors.Is. It looks at so many as are left.
func find(err error, left *int, f func(error) bool) bool {
	for err != nil && *left > 0 {
		*left--
		if f(err) {
			return true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				if find(one, left, f) {
					return true
				}
			}
			return false
		default:
			return false
		}
	}
	return false
}
