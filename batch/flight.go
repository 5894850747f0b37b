package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
)

// A flight is one call of flush.
type flight[T any] struct {
	items []T          // those of Add, then one for each of calls
	added int          // how many of items are of Add
	size  int          // of those together
	calls []*waiter[T] // calls of Do
	last  bool         // the batch has ended: items that were refused do not come again

	// These are written by the goroutine that flush is called on, and read when that was
	// joined.
	answers  []error // for each of items, if flush answers
	returned error   // the error that flush has returned
	err      error   // of the whole flight

	mark *mark
}

// A mark is the value of a flush's ctx under the key inside{batch}. So it is known which
// calls come from inside, also in the tasks that a flush starts. It is apart from the
// flight, because a ctx may be kept for longer than the items are.
type mark struct {
	over atomic.Bool // flush has returned, and so has everything that was started in it
}

// deliver flushes what f has, and returns the error that the scope is to be told.
func (b *Batch[T]) deliver(ctx context.Context, f *flight[T]) error {
	if len(f.calls) > 0 {
		return b.deliverApart(ctx, f)
	}
	f.err = errUnfinished
	defer b.land(f) // also on a panic and on Goexit
	f.err = async.Scope(ctx, func(ctx context.Context) error { return b.call(ctx, f) }, async.Name(b.name))
	_, err := f.refused()
	return err
}

// deliverApart is deliver for a flight with items of Do. A panic and Goexit are for the
// callers of Do, and not for the scope. Goexit cannot be held up, so flush is called by
// a task of its own.
func (b *Batch[T]) deliverApart(ctx context.Context, f *flight[T]) error {
	flying := f
	flush := func(ctx context.Context) error { return b.call(ctx, flying) }
	_, f.err = async.Start(ctx, flush, async.Name(b.name), async.On(ownGoroutine{})).Join(ctx)
	flying = nil // the ctx of a task has its handler, and may be kept
	told := b.land(f)
	p, panicked := f.err.(*async.PanicError)
	panicked = panicked && f.returned != f.err
	if f.added == 0 {
		if told || !panicked && !errors.Is(f.err, async.ErrGoexit) {
			return nil // its callers were told, that it was under way at least
		}
		b.mu.Lock()
		b.restAfterFailureLocked() // land took it for a success
		b.mu.Unlock()
	}
	if panicked {
		panic(p)
	}
	_, err := f.refused()
	return err
}

// call calls flush, in a scope that is the flight's alone: everything that flush starts
// has ended when that has.
func (b *Batch[T]) call(ctx context.Context, f *flight[T]) error {
	f.answers, f.returned = b.flush(context.WithValue(ctx, inside[T]{b}, f.mark), f.items)
	return f.returned
}

// answer returns the answer to items[i].
func (f *flight[T]) answer(i int) error {
	if f.err != nil || f.answers == nil {
		return f.err
	}
	return f.answers[i]
}

// refused returns the items of Add that were not delivered, and the first reason.
func (f *flight[T]) refused() (items []T, err error) {
	added := f.items[:f.added:f.added]
	switch {
	case f.err != nil:
		return added, f.err
	case f.answers == nil:
		return nil, nil
	}
	for i, item := range added {
		if f.answers[i] == nil {
			continue
		}
		if items = append(items, item); err == nil {
			err = f.answers[i]
		}
	}
	return items, err
}

// land notes how f has ended, and answers the calls that wait for it. It reports
// whether there was one of Do.
func (b *Batch[T]) land(f *flight[T]) (told bool) {
	f.mark.over.Store(true)
	refused, err := f.refused()
	b.mu.Lock()
	b.flying = 0
	b.delivered += uint64(f.added - len(refused))
	var woken []*waiter[T]
	if len(refused) == 0 {
		woken = append(b.admitLocked(), b.servedLocked()...)
	} else {
		woken = b.failLocked(f, refused, err)
	}
	for i, w := range f.calls {
		told = told || !w.left
		w.settleLocked(f.answer(f.added + i))
	}
	b.mu.Unlock()
	wakeAll(f.calls)
	wakeAll(woken)
	return told
}

// servedLocked ends the calls of Flush that wait for nothing any more, and returns them.
func (b *Batch[T]) servedLocked() (served []*waiter[T]) {
	b.flushers = slices.DeleteFunc(b.flushers, func(w *waiter[T]) bool {
		if w.upTo > b.delivered {
			return false
		}
		w.settleLocked(nil)
		served = append(served, w)
		return true
	})
	return served
}

// failLocked puts the items of Add that f has failed to deliver back to where they were,
// and the flusher is over. It returns the calls that end with err.
//
// The scope is about to be cancelled, so no other flush may start before that. If
// OnFailure has it carry on, the batch rests, so that a receiver that is gone is
// not called in a loop.
func (b *Batch[T]) failLocked(f *flight[T], refused []T, err error) (failed []*waiter[T]) {
	failed = b.failAddersLocked(err)
	for _, w := range b.flushers {
		w.settleLocked(err)
	}
	failed = append(failed, b.flushers...)
	b.flushers = nil
	if f.last {
		return failed
	}
	// The size may be that of fewer items. It is not looked at before all of them are
	// flushed, which is when the batch has rested.
	b.items, b.size = append(refused, b.items...), plus(f.size, b.size)
	b.admitLocked() // calls of Do
	b.restAfterFailureLocked()
	return failed
}

// restAfterFailureLocked is called when a failure ends the flusher. Calls that wait are not put off for the age.
func (b *Batch[T]) restAfterFailureLocked() {
	b.restLocked(afterFailure, max(b.limits.age, afterFailure))
	if len(b.calls)+len(b.adders)+len(b.flushers) > 0 {
		b.wakeLocked()
	}
}

// inside{batch} is the key of a mark.
type inside[T any] struct{ b *Batch[T] }

// inside reports whether ctx is that of a flush of b that is under way, or derived
// from it.
func (b *Batch[T]) inside(ctx context.Context) bool {
	m, _ := ctx.Value(inside[T]{b}).(*mark)
	return m != nil && !m.over.Load()
}

// selfWait is the error of a call inside flush that would wait for that flush.
func (b *Batch[T]) selfWait(call string) error {
	const text = "batch: %s inside flush would wait for itself: %w: %s -> %s"
	return fmt.Errorf(text, call, async.ErrAwaitCycle, b.name, b.name)
}
