package batch

import (
	"context"

	"github.com/ambit-go/ambit/async"
)

// end is an exit hook: every task of the scope has ended. It closes the batch and
// flushes what is left.
//
// Goroutines that are no tasks of the scope may still add, until here, and what
// they add may have started a flusher since the tasks have ended. Such a flusher belongs
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
	for _, w := range adders {
		w.settleLocked(errClosed)
	}
	b.mu.Unlock()
	wakeAll(adders)
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
// flushes what is left and returns a LostError of the items of Add that are not
// delivered then.
func (b *Batch[T]) last(ctx context.Context, _ error) error {
	b.mu.Lock()
	f := b.takeLocked()
	b.mu.Unlock()
	if f == nil {
		return nil
	}
	f.last = true
	returned := false
	defer func() {
		if lost := f.lost(); !returned && lost != nil { // the panic goes on; this is told beside it
			async.OnExit(b.ctx, func(context.Context, error) error { return lost })
		}
	}()
	err := b.deliver(ctx, f)
	returned = true
	if lost := f.lost(); lost != nil {
		return lost
	}
	return err
}

// lost returns a LostError of the items that f, the last flight, has not delivered; nil
// if there are none.
func (f *flight[T]) lost() error {
	items, err := f.refused()
	if len(items) == 0 {
		return nil
	}
	return &LostError[T]{items, err}
}
