package locks

import (
	"errors"
	"fmt"
)

var (
	// ErrNotGranted says that the lock was not granted in the time there was, or at once
	// if the caller did not want to wait. The error is a [*NotGrantedError].
	ErrNotGranted = errors.New("locks: the lock was not granted")
	// ErrNotOwner says that the lease is not the caller's, or not any more.
	ErrNotOwner = errors.New("locks: the lease is not yours, or has ended")
	// ErrConflict says that the lock is of another kind or size, or in use.
	ErrConflict = errors.New("locks: conflict")
	// ErrNotFound says that the store has no such lock.
	ErrNotFound = errors.New("locks: there is no such lock")
	// ErrValidation says that a request makes no sense. The error is a [*ValidationError].
	ErrValidation = errors.New("locks: invalid")
	// ErrUnavailable says that the store could not be reached, or could not do it now.
	ErrUnavailable = errors.New("locks: the store is not available")
	// ErrUnknownOutcome says that a step may have been done or not, and that it could
	// not be found out. What it left behind ends with its lease.
	ErrUnknownOutcome = errors.New("locks: it is not known whether the step was done")
	// ErrReentrant says that the caller holds the lock already, and that waiting for it
	// would never end.
	ErrReentrant = errors.New("locks: the caller holds this lock already")
	// ErrClosed says that the manager or the store was closed.
	ErrClosed = errors.New("locks: closed")
	// ErrReleased is the cause of the context of a lease that was given back.
	ErrReleased = errors.New("locks: the lock was released")
)

// A ValidationError says what is wrong with a request. Nothing was changed. It
// matches [ErrValidation].
type ValidationError struct {
	What string // the argument or option
	Why  string // what is wrong and what to do
}

func (e *ValidationError) Error() string        { return fmt.Sprintf("locks: %s: %s", e.What, e.Why) }
func (e *ValidationError) Is(target error) bool { return target == ErrValidation }

// Unavailable returns an error that matches [ErrUnavailable] and err. Stores use it for
// what may have been done or not. A nil err is returned as it is.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{ErrUnavailable, err}
}

// Conflict returns an error that matches [ErrConflict] and says why. Stores use it.
func Conflict(format string, args ...any) error {
	return &storeError{ErrConflict, fmt.Errorf(format, args...)}
}

// storeError is an error of one of the sorts above, with what has led to it.
type storeError struct{ sort, err error }

func (e *storeError) Error() string   { return fmt.Sprintf("%v: %v", e.sort, e.err) }
func (e *storeError) Unwrap() []error { return []error{e.sort, e.err} }
