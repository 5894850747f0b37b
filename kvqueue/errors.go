package kvqueue

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrClosed says that the handle was closed.
	ErrClosed = errors.New("kvqueue: the queue is closed")
	// ErrNoScope is returned by Take on a context without a scope, which would settle the
	// items by its end.
	ErrNoScope = errors.New("kvqueue: Take needs a context with a scope: use Do, or async.Scope")
	// ErrLost is matched by every [LostError].
	ErrLost = errors.New("kvqueue: the claim is lost")
	// ErrSettled says that an item has been settled before.
	ErrSettled = errors.New("kvqueue: the item was settled before")
)

// A LostError says that what this process had claimed may be somebody else's by now: it is
// the cause of the contexts of those items, and the answer to those that would settle
// them. It matches [ErrLost].
type LostError struct {
	Queue string
	// Reason says what has happened.
	Reason string
	// Err is the last error of the store; nil if there was none.
	Err error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("kvqueue: the session on queue %q is over, and what was claimed in it is lost: %s", e.Queue, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the last error of the store, but not one of a context: a call of the queue took
// too long then, and whoever asks for the end of a context means a context of its own. A scope whose
// time is up would take the loss for an echo of that.
func (e *LostError) Unwrap() error {
	if matches(e.Err, context.DeadlineExceeded) || matches(e.Err, context.Canceled) {
		return nil
	}
	return e.Err
}
