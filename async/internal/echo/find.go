package echo

import "reflect"

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
