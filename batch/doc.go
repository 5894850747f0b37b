// Package batch gathers items and hands them on together: when there are
// enough, when the oldest has waited long enough, when somebody asks, and at the
// end. Rows for a database, lines of a log, spans and metrics are sent like that.
//
//	err := async.Scope(ctx, func(ctx context.Context) error {
//		rows := batch.New(ctx, insert, batch.Items(500), batch.Age(time.Second))
//		for event := range events {
//			if err := rows.Add(ctx, rowOf(event)); err != nil {
//				return err
//			}
//		}
//		return nil
//	}) // insert was called for all that was added, or err says what is lost
//
// # When a batch is flushed
//
// [Items] and [Size] say how many are enough, [Age] how long the oldest may wait.
// The first that is reached counts. Without any of them only [Batch.Flush], a full
// [Capacity] and the end do.
//
// A flush is given everything that waits. That is more than Items says if more
// was added while the flush before it ran. A receiver that takes no more than
// 500 at once is served in pieces, with slices.Chunk, inside flush.
//
// # Order
//
// There is one flush at a time, and items come in the order in which they were
// added. So what was delivered is always a beginning of what was added. What
// happens before [Batch.Add] happens before the flush of its items.
//
// Inside flush the batch may be added to. A wait for it there would be one for
// itself, and is refused: [async.ErrAwaitCycle]. What is seen is the ctx, so a flush
// that waits for a task of somebody else's, which waits for the batch, hangs until
// its ctx is done.
//
// # Failures
//
// A flush that fails fails the scope, as a task of [async.Go] does: with its
// error, its panic, or [async.ErrGoexit]. To try again is for flush itself to do,
// with async.Poll for instance. Its items are not lost. They come first in the
// next flush, which is the last one if the scope was cancelled.
//
// # The end
//
// A Batch belongs to the scope of the ctx that it was made with, and ends with
// it. When every task of the scope has ended, the Batch refuses all further Adds.
// Then an exit hook of the scope flushes what is left, with a context that is not
// cancelled and lasts as long as [async.HookTimeout] says. What that flush does
// not deliver is in a [*LostError], one of the errors of the scope. So an item
// that Add has accepted is delivered, or is in a LostError. A scope that has left a
// flush behind (async.DetachAfter) leaves the Batch, too: it ends when that flush has
// returned, and the root is told of a LostError.
//
// Exit hooks run last in, first out. Open what flush needs before the Batch is
// made: it is closed after the last flush then. Of two batches in a scope the one
// that was made last is flushed first, and may still add to the other. So may a
// worker of package scheduler that was made after the Batch: it has done its tasks
// before the Batch is closed.
//
// # What it costs
//
// A Batch has no goroutine of its own. One is there while something is flushed. A
// timer is set while items wait for their Age. An idle Batch has neither, and
// keeps no memory for items.
package batch
