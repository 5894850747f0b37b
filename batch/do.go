package batch

import (
	"context"
	"fmt"
)

// Do adds one item, waits until the flush that has it has ended, and returns the answer
// of that flush.
//
//	commits := batch.New(ctx, write)
//	err := commits.Do(ctx, row) // nil: write has returned nil, and had row
//
// # Details
//
// This is group commit, as of a store that writes what many callers bring in one
// transaction. An item of Do is due at once. If no flush is under way one is started, and
// while one is, items of Do gather for the next. Items of [Batch.Add] that wait are
// flushed with them, and come first. Each item of Do is in one flush and no other,
// whatever becomes of that. Do happens before the flush of its item, and the flush
// happens before Do returns its answer.
//
// The error is what flush has returned, or its answer to this item ([NewAnswering]). A
// panic of flush is an [*async.PanicError], Goexit in it matches [async.ErrGoexit]. None
// of them fails the scope of the batch, unless the flush had items of Add as well. A
// panic or Goexit of a flush for whose items nobody waits any more fails the scope, so
// that it is not lost.
//
// If ctx is done before a flush has taken the item, the item is withdrawn: no flush will
// have it, and the error is the cause of ctx as it is. If ctx is done later, the error
// matches [ErrUnderWay] and the cause: the item may have been delivered or not. An answer
// that is there when ctx is done counts.
//
// When the ctx of the batch is done, items that no flush has taken are withdrawn with its
// cause; Do waits for a flush that is under way. When the scope ends well, the last flush
// has the items that wait. After the end the error matches [async.ErrScopeEnded].
//
// With a [Capacity] Do waits for room first, in turn with Add. The task of ctx lends its
// slot of an [async.Limit] meanwhile. Inside flush, that is with its ctx, Do would wait
// for itself: it returns an error that matches [async.ErrAwaitCycle]. A nil ctx panics.
//
// Group commit is from databases: Gawlick and Kinkade, Varieties of Concurrency Control
// in IMS/VS Fast Path, 1985.
func (b *Batch[T]) Do(ctx context.Context, item T) error {
	switch {
	case ctx == nil:
		panic("batch: Do with a nil ctx: pass that of the task that waits")
	case b.inside(ctx):
		return b.selfWait("Do")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	w := b.newWaiter(ofDo)
	w.item[0] = item
	w.items = w.item[:]
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		w.forget()
		return errClosed
	}
	if b.hasRoomLocked(1) {
		b.calls = append(b.calls, w)
	} else {
		b.adders = append(b.adders, w)
	}
	b.wakeLocked()
	b.unlockAndStart()
	return b.waitForAnswer(ctx, w)
}

// waitForAnswer waits until the flush that has the item of w has ended.
func (b *Batch[T]) waitForAnswer(ctx context.Context, w *waiter[T]) error {
	err, short := b.wait(ctx, w)
	switch {
	case !short:
		return err
	case w.left: // in a flush
		return fmt.Errorf("%w: %w", ErrUnderWay, err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.ctx.Err() != nil:
		return context.Cause(b.ctx)
	}
	return err
}
