package batch

import (
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// ErrTooMany is the error of an Add of more items than the Capacity of the batch:
// there will never be room for them together. Add them in parts.
var ErrTooMany = errors.New("batch: more items in one Add than the Capacity")

// ErrUnderWay is in the error of a Do whose ctx was done while a flush had its item:
// the item is delivered, or will be, or is not. An item that must not be delivered
// twice is to be recognized by the receiver before it is tried again.
var ErrUnderWay = errors.New("batch: the flush of the item was under way and not waited for")

// errClosed is the error of what comes after the end.
var errClosed = fmt.Errorf("batch: closed, because the scope it was made in is ending: %w", async.ErrScopeEnded)

// errUnfinished is what others are told of a flush that has not returned. The
// scope is told of the panic itself.
var errUnfinished = errors.New("batch: flush has panicked or called runtime.Goexit")

// wrongAnswers is the error of an answering flush that has not answered each item.
func wrongAnswers(answers, items int) error {
	const text = "batch: flush has returned %d answers to %d items: return one for each, nil if it was delivered"
	return fmt.Errorf(text, answers, items)
}

// A LostError holds the items that were accepted and could not be delivered when
// the scope of the batch ended: no flush that was given them has returned nil. If
// the last flush has failed half way, some of them may have arrived all the same.
type LostError[T any] struct {
	Items []T   // in the order in which they were added
	Err   error // why the last flush has failed
}

// Error says how many items are lost, and why.
func (e *LostError[T]) Error() string {
	things := "items"
	if len(e.Items) == 1 {
		things = "item"
	}
	return fmt.Sprintf("batch: %d %s lost: %v", len(e.Items), things, e.Err)
}

// Unwrap returns why the last flush has failed.
func (e *LostError[T]) Unwrap() error { return e.Err }
