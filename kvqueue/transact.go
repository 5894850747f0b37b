package kvqueue

import (
	"context"
	"fmt"
)

// Transact does what f asks for, in one transaction: keys of the caller's own are written, and items
// are added to queues of the same store, on the guards that f gives, all of it or nothing. So an
// item is there if, and only if, what it is about is.
//
//	err := q.Transact(ctx, func(tx *kvqueue.Tx) {
//		tx.If(kvqueue.Guard{Key: []byte("order/17"), Is: kvqueue.Absent})
//		tx.Put([]byte("order/17"), order)
//		tx.Enqueue(q, []byte("order/17"))
//	})
//
// It blocks until the store has done it, or ctx ends, or the store has not done it in 30 s. f is called once, and
// must not keep its argument. If a guard of f does not hold, the error matches [ErrConflict] and nothing was done.
// A batch that one transaction of the store cannot hold, or nothing at all, is an [*InvalidError], before anything
// was sent. An answer that was lost is found out about, as with [Queue.Enqueue], whose errors are those of Transact
// otherwise; one that matches [ErrUnknown] says that all was done, or nothing.
func (q *Queue) Transact(ctx context.Context, f func(tx *Tx)) error {
	tx, err := q.collect("Transact", f, 2, 1)
	switch {
	case err != nil:
		return err
	case len(tx.writes)+len(tx.adds) == 0:
		return invalid("Transact", "there is nothing to write: use Put, Delete or Enqueue of the Tx")
	case ctx.Err() != nil:
		return stop(ctx)
	}
	open, err := q.enqueues.do(ctx, &appending{tx: tx, producer: random(), at: new(Position)})
	if open {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err == nil {
		tx.tellAdded()
	}
	return err
}
