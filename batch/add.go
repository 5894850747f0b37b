package batch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Add adds items, all of them or none.
//
//	err := lines.Add(ctx, "one", "two") // nil: accepted
//
// # Details
//
// With a nil error the items are accepted: they will be delivered, or be in the
// [*LostError] of the scope. With an error none of them will ever be delivered.
//
// Add blocks only while there is no room for the items together; see [Capacity]. Calls
// that wait are served in turn. The wait ends with an error when ctx is done, when the
// ctx of the batch is, when a flush of items of Add fails, and when the batch is closed.
// The task of ctx lends its slot of an [async.Limit] meanwhile. If there is room, it does
// not matter that ctx is done: in a scope that is cancelled tasks may add their last
// words.
//
// After the end the error matches [async.ErrScopeEnded]. More items than the Capacity are
// refused with [ErrTooMany]. An Add inside flush, that is with its ctx, adds to the next
// flush. If it would have to wait for room, it would wait for itself, and it returns an
// error that matches [async.ErrAwaitCycle]. A nil ctx panics. The slice of items is the
// caller's again when Add has returned.
func (b *Batch[T]) Add(ctx context.Context, items ...T) error {
	if ctx == nil {
		panic("batch: Add with a nil ctx: pass that of the task that adds")
	}
	if len(items) == 0 {
		return nil
	}
	size := b.sizeOfAll(items)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	if !b.hasRoomLocked(len(items)) {
		b.mu.Unlock()
		return b.addInTurn(ctx, slices.Clone(items), size)
	}
	b.acceptLocked(items, size)
	b.unlockAndStart()
	return nil
}

// addInTurn is Add when there may be no room. items are no slice of the caller's.
func (b *Batch[T]) addInTurn(ctx context.Context, items []T, size int) error {
	if len(items) > b.limits.capacity {
		return fmt.Errorf("%w: %d items, %d fit", ErrTooMany, len(items), b.limits.capacity)
	}
	inside := b.inside(ctx)
	w := b.newWaiter(ofAdd)
	w.items, w.size = items, size
	var refused error
	waits := false
	b.mu.Lock()
	switch {
	case b.closed:
		refused = errClosed
	case b.hasRoomLocked(len(items)):
		b.acceptLocked(items, size)
	case inside:
		refused = b.selfWait("Add without room")
	default:
		b.adders = append(b.adders, w)
		b.wakeLocked()
		waits = true
	}
	b.unlockAndStart()
	if !waits {
		w.forget()
		return refused
	}
	err, short := b.wait(ctx, w)
	if short {
		return fmt.Errorf("batch: no room for %d of at most %d items: %w", len(items), b.limits.capacity, err)
	}
	return err
}

// sizeOfAll returns the size of items together. It calls the user's function, so
// no lock is held.
func (b *Batch[T]) sizeOfAll(items []T) (size int) {
	if b.sizeOf == nil {
		return 0
	}
	for _, item := range items {
		size = plus(size, max(b.sizeOf(item), 0))
	}
	return size
}

// plus returns a + b, neither of which is negative, or the most that there is.
func plus(a, b int) int { return a + min(b, math.MaxInt-a) }

// hasRoomLocked reports whether n items may be added without waiting: there is
// room, and nobody waits for it.
func (b *Batch[T]) hasRoomLocked(n int) bool {
	return b.limits.capacity == 0 || len(b.adders) == 0 && b.fitsLocked(n)
}

// fitsLocked reports whether there is room for n items.
func (b *Batch[T]) fitsLocked(n int) bool {
	return n <= b.limits.capacity-b.lenLocked()
}

func (b *Batch[T]) lenLocked() int { return len(b.items) + len(b.calls) + b.flying }

// acceptLocked adds items.
func (b *Batch[T]) acceptLocked(items []T, size int) {
	if len(b.items) == 0 {
		if b.limits.age > 0 {
			b.oldest = time.Now()
			if !b.resting { // else the end of the rest flushes it
				b.setTimerLocked(b.limits.age)
			}
		}
		b.items = make([]T, 0, max(len(items), b.hint))
	}
	b.items = append(b.items, items...)
	b.size = plus(b.size, size)
	b.added += uint64(len(items))
}

// admitLocked accepts the items of the calls that wait for room, in turn, as far as
// there is some. It returns the calls of Add among them, which are over.
func (b *Batch[T]) admitLocked() (admitted []*waiter[T]) {
	n := 0
	for ; n < len(b.adders) && b.fitsLocked(len(b.adders[n].items)); n++ {
		w := b.adders[n]
		if w.of == ofDo {
			b.calls = append(b.calls, w)
			continue
		}
		b.acceptLocked(w.items, w.size)
		w.settleLocked(nil)
		admitted = append(admitted, w)
	}
	b.adders = slices.Delete(b.adders, 0, n)
	return admitted
}

// failAddersLocked ends the calls of Add that wait for room with err, and returns
// them. Calls of Do stay: the flush that has failed had nothing of theirs.
func (b *Batch[T]) failAddersLocked(err error) (failed []*waiter[T]) {
	b.adders = slices.DeleteFunc(b.adders, func(w *waiter[T]) bool {
		if w.of == ofDo {
			return false
		}
		w.settleLocked(err)
		failed = append(failed, w)
		return true
	})
	return failed
}
