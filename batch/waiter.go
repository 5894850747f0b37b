package batch

import (
	"context"
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// A waiter is a call of Add that waits for room, or one of Flush.
//
// It waits for a promise of the ctx of the batch, so it is told when that is
// cancelled, and lends its slot of a Limit. The promise is resolved in every case,
// with the error that the call is to return: one that is rejected and that nobody
// awaits any more would fail the scope.
type waiter[T any] struct {
	future  *async.Future[error]
	promise *async.Promise[error]

	// For Add. items is a copy: a slice that is kept would be allocated by every
	// caller, also of an Add that need not wait.
	items    []T
	size     int
	accepted bool // guarded by mu of the batch

	upTo uint64 // for Flush: the number of the last item that it waits for
}

// newWaiter returns a waiter. It asks the ctx of the batch, which may be a user's,
// so no lock is held.
func (b *Batch[T]) newWaiter() *waiter[T] {
	w := new(waiter[T])
	w.future, w.promise = async.NewPromise[error](b.ctx)
	return w
}

// answer has the call of w return err. No lock is held: it wakes w.
func (w *waiter[T]) answer(err error) { w.promise.Resolve(err) }

// hasRoomLocked reports whether n items may be added without waiting: there is
// room, and nobody waits for it.
func (b *Batch[T]) hasRoomLocked(n int) bool {
	return b.limits.capacity == 0 || len(b.adders) == 0 && b.fitsLocked(n)
}

// fitsLocked reports whether there is room for n items.
func (b *Batch[T]) fitsLocked(n int) bool { return n <= b.limits.capacity-len(b.items)-b.flying }

// addInTurn is Add when there may be no room. items are no slice of the caller's.
func (b *Batch[T]) addInTurn(ctx context.Context, items []T, size int) error {
	if len(items) > b.limits.capacity {
		return fmt.Errorf("%w: %d items, %d fit", ErrTooMany, len(items), b.limits.capacity)
	}
	inside := b.inside(ctx)
	w := b.newWaiter()
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
	start := b.claimLocked()
	b.mu.Unlock()
	if start {
		b.start()
	}
	if !waits {
		w.answer(nil) // nobody will
		return refused
	}
	return b.waitForRoom(ctx, w)
}

// waitForRoom waits until w is answered. If its wait is cut short, what counts is
// whether its items were accepted by then: both are decided under the lock.
func (b *Batch[T]) waitForRoom(ctx context.Context, w *waiter[T]) error {
	answer, short := w.future.Wait(ctx)
	if short == nil {
		return answer
	}
	b.mu.Lock()
	accepted := w.accepted
	var next []*waiter[T]
	if i := slices.Index(b.adders, w); i >= 0 {
		b.adders = slices.Delete(b.adders, i, i+1)
		next = b.admitLocked() // the one behind it may need less
	}
	start := b.claimLocked()
	b.mu.Unlock()
	answerAll(next, nil)
	if start {
		b.start()
	}
	w.answer(nil) // nobody will
	if accepted {
		return nil
	}
	return fmt.Errorf("batch: no room for %d of at most %d items: %w", len(w.items), b.limits.capacity, short)
}

// waitForFlush waits until w is answered. If its wait is cut short, what counts is
// whether its items were delivered by then.
func (b *Batch[T]) waitForFlush(ctx context.Context, w *waiter[T]) error {
	answer, short := w.future.Wait(ctx)
	if short == nil {
		return answer
	}
	b.mu.Lock()
	if i := slices.Index(b.flushers, w); i >= 0 {
		b.flushers = slices.Delete(b.flushers, i, i+1)
	}
	delivered := w.upTo <= b.delivered
	b.mu.Unlock()
	w.answer(nil) // nobody will
	if delivered {
		return nil
	}
	return short
}

// admitLocked accepts the items of those who wait for room, as far as there is
// some, and returns whom.
func (b *Batch[T]) admitLocked() []*waiter[T] {
	n := 0
	for ; n < len(b.adders) && b.fitsLocked(len(b.adders[n].items)); n++ {
		w := b.adders[n]
		b.acceptLocked(w.items, w.size)
		w.accepted = true
	}
	admitted := slices.Clone(b.adders[:n])
	b.adders = slices.Delete(b.adders, 0, n)
	return admitted
}

// servedLocked returns the calls of Flush that wait for nothing any more.
func (b *Batch[T]) servedLocked() (served []*waiter[T]) {
	b.flushers = slices.DeleteFunc(b.flushers, func(w *waiter[T]) bool {
		if w.upTo > b.delivered {
			return false
		}
		served = append(served, w)
		return true
	})
	return served
}

func answerAll[T any](ws []*waiter[T], err error) {
	for _, w := range ws {
		w.answer(err)
	}
}

// The value of a flush's ctx under the key inside{batch} is a *flight. So it is known
// which calls come from inside, also in the tasks that a flush starts.
type inside[T any] struct{ b *Batch[T] }

// inside reports whether ctx is that of a flush of b that is under way, or derived
// from it.
func (b *Batch[T]) inside(ctx context.Context) bool {
	f, _ := ctx.Value(inside[T]{b}).(*flight)
	return f != nil && !f.over.Load()
}

// selfWait is the error of a call inside flush that would wait for that flush.
func (b *Batch[T]) selfWait(call string) error {
	return fmt.Errorf("batch: %s inside flush would wait for itself: %w: %s -> %s", call, async.ErrAwaitCycle, b.name, b.name)
}
