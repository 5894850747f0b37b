package batch

import "context"

// Flush has everything flushed that was added before the call, without waiting for a
// number, a size or an age, and returns when it was delivered.
//
//	err := lines.Flush(ctx)
//
// # Details
//
// Flush waits for the flush that is under way, and for its turn after that. Items of
// [Batch.Do] have callers of their own who wait: Flush does not.
//
// If a flush fails, Flush returns its error, and the items are flushed again later; see
// the documentation of the package. When ctx is done, or the ctx of the batch, Flush
// returns an error that matches that one's Err and Cause. The items are delivered all the
// same, or are in the [*LostError] of the scope. After the end the error matches
// [async.ErrScopeEnded], unless there is nothing left to deliver: then it is nil.
//
// The task of ctx lends its slot of an [async.Limit] while it waits. Inside flush, that
// is with its ctx, Flush would wait for itself: it returns an error that matches
// [async.ErrAwaitCycle]. A nil ctx panics.
func (b *Batch[T]) Flush(ctx context.Context) error {
	if ctx == nil {
		panic("batch: Flush with a nil ctx: pass that of the task that waits")
	}
	if b.inside(ctx) {
		return b.selfWait("Flush")
	}
	b.mu.Lock()
	upTo := b.added
	idle := b.delivered == upTo
	b.mu.Unlock()
	if idle {
		return nil
	}
	w := b.newWaiter(ofFlush)
	w.upTo = upTo
	b.mu.Lock()
	missing := b.delivered < upTo
	over := b.closed && b.flying == 0 && len(b.items) == 0 // missing items are lost
	waits := missing && !over
	b.asked = max(b.asked, upTo)
	if waits {
		b.flushers = append(b.flushers, w)
		b.wakeLocked()
	}
	b.unlockAndStart()
	switch {
	case waits:
		err, _ := b.wait(ctx, w)
		return err
	case missing:
		w.forget()
		return errClosed
	}
	w.forget()
	return nil
}
