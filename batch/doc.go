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
// [Batch.Add] hands an item over. [Batch.Do] adds one and waits for what becomes of it:
// group commit.
//
//	stored := batch.New(ctx, commit)
//	err := stored.Do(ctx, row) // nil: commit has returned nil, and had row
//
// # When a batch is flushed
//
// [Items] and [Size] say how many are enough, [Age] how long the oldest may wait.
// The first that is reached counts. Without any of them only [Batch.Flush], a Do, a
// full [Capacity] and the end do. An item of Do is due at once.
//
// A flush is given everything that waits, which is more than Items says if more
// was added while the flush before it ran. A receiver that takes no more than
// 500 at once is served in pieces, with slices.Chunk, inside flush; or the batch has a
// Capacity of 500.
//
// # Order
//
// There is one flush at a time, and items come in the order in which they were
// added; those of Add before those of Do that wait beside them. So the items of Add that
// were delivered are always a beginning of those that were added, unless flush answers
// each ([NewAnswering]). An Add or Do happens before the flush of its items.
//
// Inside flush the batch may be added to. A wait for it there would be one for
// itself, and is refused: [async.ErrAwaitCycle]. The batch knows by the ctx, so a flush
// that waits for a task of somebody else's, which waits for the batch, hangs until
// its ctx is done.
//
// # Failures
//
// A flush of items of Add that fails also fails the scope, as a task of [async.Go] does:
// with its error, its panic, or [async.ErrGoexit]. To try again is for flush itself to
// do, with [async.Retry] for instance. The items are not lost. They come first in the
// next flush, which is the last one if the scope was cancelled.
//
// Items of Do are flushed once. The error of their flush is returned by the calls that
// wait for it, and so are its panic, as an [*async.PanicError], and Goexit; the scope
// goes on. Whoever stops waiting is told either the cause of the ctx, and then no flush
// will have the item, or [ErrUnderWay].
//
// A flush that has items of both does both: its error is returned by Do and fails the
// scope; only the items of Add come again.
//
// # The end
//
// A Batch belongs to the scope of the ctx that it was made with, and ends with
// it. When every task of the scope has ended, the Batch refuses all further Adds and
// Dos. Then an exit hook of the scope flushes what is left, with a context that is not
// cancelled and lasts as long as [async.HookTimeout] says. Items of Add that this flush
// does not deliver are in a [*LostError], one of the errors of the scope. So an item
// that Add has accepted is delivered, or is in a LostError. A scope that has left a
// flush behind (async.DetachAfter) leaves the Batch, too: the Batch ends when that flush
// has returned, and the root is told of a LostError.
//
// A batch that many requests use with Do is made in a scope that lasts longer than they
// do, as with the context of an [async.Group] that is stopped when the store is closed.
// Items that wait then are withdrawn with the cause of the stop.
//
// Exit hooks run last in, first out. Open what flush needs before the Batch is
// made: it is closed after the last flush then. If a scope has two batches, the one
// that was made last is flushed first, and may still add to the other. So may a
// worker of package scheduler that was made after the Batch: it has done its tasks
// before the Batch is closed.
//
// # What it costs
//
// A Batch has no goroutine of its own. One is there while something is flushed, and a
// second while a flush has items of Do. A timer is set while items wait for their Age.
// An idle Batch has neither, and keeps no memory for items. A batch that flushes
// without a pause for 200 ms makes one of 5 ms, so that a scope which is about to end
// can do so.
package batch
