package batch

import (
	"context"

	"github.com/ambit-go/ambit/async"
)

// end is an exit hook: every task of the scope has ended. It closes the batch and
// flushes what is left.
//
// Goroutines that are no tasks of the scope may still add, until here, and what
// they add may have started a flusher since the tasks have ended. That one belongs
// to the scope as well. So if it is flushing, the last flush is left to another
// exit hook, which the scope runs when it has joined that task.
func (b *Batch[T]) end(ctx context.Context, _ error) error {
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	adders := b.adders
	b.adders = nil
	b.mu.Unlock()
	answerAll(adders, errClosed)
	// No flusher is claimed any more. Those that were claimed before are members of
	// the scope when this returns, and if they have not begun to flush they will not.
	b.starts.Wait()
	b.mu.Lock()
	flying := b.flying > 0
	b.mu.Unlock()
	if flying {
		async.OnExit(b.ctx, b.last)
		return nil
	}
	return b.last(ctx, nil)
}

// last is an exit hook: nothing is added any more, and no flush is under way. It
// flushes what is left and returns a LostError of what that does not deliver.
func (b *Batch[T]) last(ctx context.Context, _ error) error {
	b.mu.Lock()
	items, _ := b.takeLocked()
	b.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	err := errUnfinished
	defer func() {
		b.landLast(len(items), err)
		if err == errUnfinished { // the panic goes on; this is told beside it
			async.OnExit(b.ctx, func(context.Context, error) error { return &LostError[T]{items, err} })
		}
	}()
	if err = b.call(ctx, items); err != nil {
		return &LostError[T]{items, err}
	}
	return nil
}

// landLast notes how the flush of the last n items has ended, and answers those
// who wait for it.
func (b *Batch[T]) landLast(n int, err error) {
	b.mu.Lock()
	b.flying = 0
	if err == nil {
		b.delivered += uint64(n)
	}
	flushers := b.flushers
	b.flushers = nil
	b.mu.Unlock()
	answerAll(flushers, err)
}
