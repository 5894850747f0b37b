package async

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file says whose a failure is: a failure of several is told with the names that its
// tasks were given, and one that nobody awaited with the name of the task.

// nameFailure has f, of t, listed in the tally of the owner with the name that t was
// given, so that the text of a list says whose each failure is. Goexit, which says
// nothing else, is listed with the name of the function.
func (t *task) nameFailure(f *tally.Fact) {
	n, s := t.naming(), t.owner
	if f.Err == nil || n.given == "" && f.Err != error(ErrGoexit) {
		return
	}
	f.As = &failureOf{f.Err, n, s}
	if f.Class != tally.Failure {
		return
	}
	errs := slices.Clone(f.Errs)
	for i, err := range errs {
		if _, named := err.(*failureOf); !named {
			errs[i] = &failureOf{err, n, s}
		}
	}
	f.Errs = errs
}

// failuresOf returns the Errors of e, each with its task if that is known, for the tally of the
// scope around.
func failuresOf(e *ScopeError) []error {
	if e.paths == nil {
		return e.Errors
	}
	errs := slices.Clone(e.Errors)
	for i, path := range e.paths {
		if path != "" {
			errs[i] = &failureOf{errs[i], naming{given: path}, nil}
		}
	}
	return errs
}

// A failureOf is a failure with the task whose it is. Only tallies hold one.
type failureOf struct {
	error
	task naming
	in   *scope
}

// withPaths returns errs as users are given them, and the names of their tasks.
func withPaths(errs []error) (given []error, paths []string) {
	for i, err := range errs {
		f, ok := err.(*failureOf)
		if !ok {
			continue
		}
		if paths == nil {
			given, paths = slices.Clone(errs), make([]string, len(errs))
		}
		given[i], paths[i] = f.error, f.task.in(f.in)
	}
	if paths == nil {
		return errs, nil
	}
	return given, paths
}

// withoutPath returns err as users are given it.
func withoutPath(err error) error {
	if f, ok := err.(*failureOf); ok {
		return f.error
	}
	return err
}

// bare returns the failure that err tells of, which is err itself unless it is an
// UnawaitedError: both are one failure. All copies of a panic are one, too.
func bare(err error) error {
	switch e := err.(type) {
	case *UnawaitedError:
		if e != nil {
			return bare(e.Err)
		}
	case *failureOf:
		return bare(e.error)
	case *PanicError:
		if e.isOurs() {
			return e.of.first
		}
	}
	return err
}

// with returns what a scope tells of err, a failure of the task or one of several. A
// panic says itself where it was. If err is another such error, that of a task further
// in, it leads to the cause already.
func (e UnawaitedError) with(err error) error {
	switch err.(type) {
	case *PanicError, *UnawaitedError:
		return err
	}
	e.Err = err
	return &e
}

// listed returns the list of errors that v tells of, nil if it is none. If that is of
// a future that nobody awaited, each of its errors says so.
func (v *verdict) listed() *ScopeError {
	switch e := v.err.(type) {
	case *ScopeError:
		return e
	case *UnawaitedError:
		list, _ := bare(e).(*ScopeError)
		if list == nil {
			return nil
		}
		each := *list
		each.Errors = make([]error, len(list.Errors))
		for i, err := range list.Errors {
			each.Errors[i] = e.with(err)
		}
		return &each
	}
	return nil
}

// with returns e with so much more that has gone wrong beside it.
func (e *PanicError) with(also []error, dropped int) *PanicError {
	if len(also) == 0 && dropped == 0 {
		return e
	}
	c := *e
	c.Also = slices.Clone(e.Also)
	for _, err := range also {
		if !slices.ContainsFunc(c.Also, func(other error) bool { return tally.Same(bare(other), bare(err)) }) {
			c.Also = append(c.Also, err)
		}
	}
	if n := len(c.Also) - maxListed; n > 0 {
		c.Also, dropped = c.Also[:maxListed], dropped+n
	}
	c.dropped += dropped
	return &c
}
