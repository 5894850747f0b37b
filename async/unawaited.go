package async

import "github.com/ambit-go/ambit/async/internal/tally"

// An UnawaitedError is what a scope tells of the failure of a future that nobody was
// given by the end of the scope, because nobody awaited it: of which task it is. A
// task that was started with [Go] needs no Await, and its failure is told as it is;
// so is a panic, which is a [*PanicError]. Who awaits the future after that is given
// Err.
//
// [errors.Is] and [errors.As] reach Err. An error that several tasks have returned is
// listed once, so only the first of them is named.
type UnawaitedError struct {
	Task string // the name of the task
	Err  error  // its failure
}

// Error names the task and says that nobody awaited it, and then the failure.
func (e *UnawaitedError) Error() string {
	if e == nil {
		return nilText(e)
	}
	return prefix(e.Task) + "nobody awaited it: " + within(e.Task, e.Err)
}

// Unwrap returns the failure.
func (e *UnawaitedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// bare returns the failure that err tells of, which is err itself unless it is an
// UnawaitedError: both are one failure.
func bare(err error) error {
	if e, ok := err.(*UnawaitedError); ok && e != nil {
		return e.Err
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

// unawaited is with for an outcome that nobody has claimed. A group needs nobody who
// waits for it: its failure is told as it is.
func unawaited(x *tally.Entry, err error) error {
	of := x.Of.(*unclaimed)
	if of.task == (naming{}) {
		return err
	}
	return UnawaitedError{Task: of.task.in(of.scope)}.with(err)
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
