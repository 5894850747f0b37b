package lease

import (
	"errors"
	"fmt"
)

var (
	// ErrOver is matched by the cause of a term whose time has run out without a renewal:
	// the store could not be reached, or the process or its machine stood still.
	ErrOver = errors.New("lease: the term is over")
	// ErrLost is matched by the cause of a term that the store has ended: another holder
	// has the thing, or somebody has revoked it. A renew function returns an error that
	// matches ErrLost to say so.
	ErrLost = errors.New("lease: lost")
	// ErrEnded is matched by the cause of a term that its owner has ended, with
	// [Lease.End] or [Lease.Release], or by the end of the scope of its keeper.
	ErrEnded = errors.New("lease: ended")
	// ErrSkipped is what a renew function says of a lease that its call has left out, for
	// instance because a row is locked by another transaction. The keeper renews the lease
	// again at once, in a call of its own.
	ErrSkipped = errors.New("lease: skipped")
)

// An Error is why a belief has ended. It is the cause of the contexts of a lease, unless
// [CauseOf] has made another error of it. One lease has one such error.
type Error struct {
	// Reason is ErrOver, ErrLost or ErrEnded.
	Reason error
	// Err tells more; nil: nothing more is known. With ErrLost it is what the renew
	// function has returned, with ErrEnded why the keeper has ended the lease, with ErrOver
	// what the last renewal has failed with. Is and As search the first two. They do not
	// search the last: a renewal that ran out of its own time would make the term look like
	// a deadline of the caller.
	Err error
	// Tries is how many renewals were sent since the last one that had success. With
	// ErrOver and no Tries the process, or its machine, stood still.
	Tries int
}

func (e *Error) Error() string {
	text := e.Reason.Error()
	if e.Reason == ErrOver && e.Tries > 0 {
		text = fmt.Sprintf("%s: renewals without success: %d", text, e.Tries)
	}
	switch {
	case e.Err == nil:
		return text
	case e.Reason == ErrOver:
		return fmt.Sprintf("%s; the last: %v", text, e.Err)
	case errors.Is(e.Err, e.Reason):
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns the Reason, and Err unless the Reason is ErrOver.
func (e *Error) Unwrap() []error {
	if e.Err == nil || e.Reason == ErrOver {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}
