package locks

import (
	"cmp"
	"errors"
	"fmt"
)

var (
	// ErrNotGranted says that the lock was not granted in the time there was, or at once
	// if the caller did not want to wait. The error is a [*NotGrantedError].
	ErrNotGranted = errors.New("locks: the lock was not granted")
	// ErrNotOwner says that the lease is not the caller's, or not any more.
	ErrNotOwner = errors.New("locks: the lease is not yours, or has ended")
	// ErrConflict says that the lock is of another kind, too small, or in use.
	ErrConflict = errors.New("locks: conflict")
	// ErrNotFound says that the store has no such lock.
	ErrNotFound = errors.New("locks: there is no such lock")
	// ErrValidation says that a request makes no sense, or that the store is set up so that it
	// will never be done: the user may not, a file cannot be opened. A fault in a request is
	// a [*ValidationError].
	ErrValidation = errors.New("locks: invalid")
	// ErrUnavailable says that the store could not be reached, or could not do it now.
	ErrUnavailable = errors.New("locks: the store is not available")
	// ErrUnknownOutcome says that a step may have been done or not, and that it could
	// not be found out. A grant that it left behind ends with its lease.
	ErrUnknownOutcome = errors.New("locks: it is not known whether the step was done")
	// ErrReentrant says that the caller holds the lock already, and that waiting for it
	// would never end.
	ErrReentrant = errors.New("locks: the caller holds this lock already")
	// ErrClosed says that the manager or the store was closed.
	ErrClosed = errors.New("locks: closed")
	// ErrReleased says that the lock was given back.
	ErrReleased = errors.New("locks: the lock was released")
	// ErrNotReleased says that the work was done under the lock, which then could not be
	// given back: it is free when its lease has run out. The error is a [*ReleaseError].
	ErrNotReleased = errors.New("locks: the lock was not given back")

	errSkipped  = errors.New("the row of the lock is locked by another transaction")
	errSilent   = errors.New("a question is on its way and has not come back")
	errTooLate  = errors.New("its answers come after the lease that they grant has run out")
	errPanicked = errors.New("the store has panicked")
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
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return &storeError{ErrUnavailable, err}
}

// Invalid returns an error that matches [ErrValidation] and err. Stores use it for what they
// will never do as they are set up: nothing was changed, and to ask again does not help.
func Invalid(err error) error { return &storeError{ErrValidation, err} }

// Conflict returns an error that matches [ErrConflict] and says why. Stores use it.
func Conflict(format string, args ...any) error {
	return &storeError{ErrConflict, fmt.Errorf(format, args...)}
}

// storeError is an error of one of the sorts above, with what has led to it.
type storeError struct{ sort, err error }

func (e *storeError) Error() string   { return fmt.Sprintf("%v: %v", e.sort, e.err) }
func (e *storeError) Unwrap() []error { return []error{e.sort, e.err} }

// A Refusal is why a lock was not granted.
type Refusal string

const (
	RefusedNoWait    Refusal = "NO_WAIT"   // it was not free, and the caller did not want to wait
	RefusedTimedOut  Refusal = "TIMED_OUT" // the time to wait has passed: that of Wait, or the deadline of ctx
	RefusedCancelled Refusal = "CANCELLED" // ctx was cancelled
)

// A NotGrantedError says that somebody else has the lock. It matches [ErrNotGranted]. If
// the end of ctx was the reason, it matches ctx.Err and its cause, too. The request was
// withdrawn, unless the error matches [ErrUnknownOutcome].
type NotGrantedError struct {
	Key    string
	Reason Refusal
	Place  int    // how many requests waited before this one when it was asked for last
	Holder string // the owner of a lease that was in the way; empty: not known
	Err    error  // the cause of the end of ctx; nil: it lasts
	ctxErr error
}

func (e *NotGrantedError) Error() string {
	text := fmt.Sprintf("locks: %.200q was not granted: %s", e.Key, e.Reason)
	if e.Holder != "" {
		text += fmt.Sprintf(", held by %s", e.Holder)
	}
	if e.Place > 0 {
		text += fmt.Sprintf(", %d before it", e.Place)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause of the end of ctx.
func (e *NotGrantedError) Unwrap() error { return e.Err }

func (e *NotGrantedError) Is(target error) bool {
	return target == ErrNotGranted || e.ctxErr != nil && target == e.ctxErr
}

// A LossReason is how a lease was lost.
type LossReason string

const (
	LostExpired     LossReason = "expired"     // its time ran out and no renewal was sent: the process was stopped, or it is not renewed
	LostStolen      LossReason = "stolen"      // the store does not have it any more, although its time had not run out
	LostUnreachable LossReason = "unreachable" // its time ran out and the store had not answered
	LostRevoked     LossReason = "revoked"     // somebody called Revoke
	LostStalled     LossReason = "stalled"     // its time ran out and the body had not said that it gets on
)

// A LostError says that the lock was lost while it was needed: somebody else may have
// it. It is the cause of the context of the body, and what With returns.
type LostError struct {
	Key    string
	Token  int64
	Reason LossReason
	Err    error // LostUnreachable: what the store said last
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("locks: %.200q was lost: %s (token %d)", e.Key, e.Reason, e.Token)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is says that a lease which was lost because the store did not answer matches
// [ErrUnavailable].
func (e *LostError) Is(target error) bool {
	return target == ErrUnavailable && e.Reason == LostUnreachable
}

// A ReleaseError says that all that was done was done under the lock, but that it could
// not be given back. It is not free before its lease has run out. It matches
// [ErrNotReleased] and Err.
type ReleaseError struct {
	Key string
	Err error
}

func (e *ReleaseError) Error() string {
	return fmt.Sprintf("locks: the work is done, but %.200q was not given back: %v", e.Key, e.Err)
}
func (e *ReleaseError) Unwrap() error        { return e.Err }
func (e *ReleaseError) Is(target error) bool { return target == ErrNotReleased }

// both returns an error that matches both, first of all err.
func both(err, more error) error {
	if err == nil || more == nil {
		return cmp.Or(err, more)
	}
	return &bothError{err, more}
}

type bothError struct{ first, second error }

func (e *bothError) Error() string   { return fmt.Sprintf("%v; beside that: %v", e.first, e.second) }
func (e *bothError) Unwrap() []error { return []error{e.first, e.second} }

// transient says whether it may help to repeat a step that a store has answered with err.
func transient(err error) bool {
	for _, said := range []error{ErrConflict, ErrNotFound, ErrNotOwner, ErrValidation, ErrClosed} {
		if errors.Is(err, said) {
			return false
		}
	}
	return true
}
