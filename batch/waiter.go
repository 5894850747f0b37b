package batch

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// A waiter is a call that waits: of Add for room, of Flush for a flush, of Do for both.
//
// It waits for a promise of the ctx of the batch, so it is told when that is
// cancelled, and lends its slot of a Limit. The promise is resolved in every case,
// with the error that the call is to return: one that is rejected and that nobody
// awaits any more would fail the scope.
type waiter[T any] struct {
	future  *async.Future[error]
	promise *async.Promise[error]
	of      method

	// For Add and Do. The items of Add are a copy: a slice that is kept would be allocated by
	// every caller, also of an Add that need not wait.
	items []T
	size  int
	item  [1]T // for Do: the array of items

	upTo uint64 // for Flush: the number of the last item that it waits for

	// These are guarded by mu of the batch. promise and future are, too, until settled is
	// set: they do not change after that.
	settled bool  // err is what the call returns
	err     error // settled: nil for an Add that was accepted
	taken   bool  // for Do: a flush has the item, or had it
	left    bool  // for Do: the call has returned before the flush that has the item
}

// A method says what call a waiter is.
type method uint8

const (
	ofAdd method = iota
	ofFlush
	ofDo
)

// newWaiter returns a waiter. It asks the ctx of the batch, which may be a user's,
// so no lock is held.
func (b *Batch[T]) newWaiter(of method) *waiter[T] {
	w := &waiter[T]{of: of}
	w.future, w.promise = async.NewPromise[error](b.ctx)
	return w
}

// settleLocked decides what the call of w returns.
func (w *waiter[T]) settleLocked(err error) { w.settled, w.err = true, err }

// forget has the scope of the batch forget w, for which nobody waits.
func (w *waiter[T]) forget() { w.promise.Resolve(nil) }

// wakeAll has the calls of ws, which are settled, return. No lock is held.
func wakeAll[T any](ws []*waiter[T]) {
	for _, w := range ws {
		w.promise.Resolve(w.err)
	}
}

// wait waits until w is settled, and returns its error. short says that the wait was
// cut short before, by ctx or by the ctx of the batch, and err by which. The two may
// come at the same time: the lock decides.
func (b *Batch[T]) wait(ctx context.Context, w *waiter[T]) (err error, short bool) {
	for again := false; ; again = true {
		answer, cut := w.future.Wait(ctx)
		if cut == nil {
			return answer, false
		}
		// A wait that is cut short again has lost the scope, which has left the flush behind.
		if again || ctx.Err() != nil || !b.waitsOn(w) {
			return b.leave(w, cut)
		}
	}
}

// waitsOn reports whether w, a call of Do, waits for the flush that has its item,
// although the ctx of the batch is done. The flush is a task of the scope, and was told.
func (b *Batch[T]) waitsOn(w *waiter[T]) bool {
	future, promise := async.NewPromise[error](context.WithoutCancel(b.ctx))
	b.mu.Lock()
	on := w.taken && !w.settled
	if on {
		w.future, w.promise = future, promise
	}
	b.mu.Unlock()
	if !on {
		promise.Resolve(nil) // the scope forgets it
	}
	return on
}

// leave ends the wait of w, which was cut short with the error cut.
func (b *Batch[T]) leave(w *waiter[T], cut error) (err error, short bool) {
	b.mu.Lock()
	w.left = w.taken && !w.settled
	b.calls = without(b.calls, w)
	b.adders = without(b.adders, w)
	b.flushers = without(b.flushers, w)
	admitted := b.admitLocked() // the room of w is free, or the call behind it needs less
	settled, answer := w.settled, w.err
	b.unlockAndStart()
	wakeAll(admitted)
	w.forget()
	if settled {
		return answer, false
	}
	return cut, true
}

// without returns ws without w.
func without[T any](ws []*waiter[T], w *waiter[T]) []*waiter[T] {
	if i := slices.Index(ws, w); i >= 0 {
		return slices.Delete(ws, i, i+1)
	}
	return ws
}
