package async

import (
	"context"
	"iter"

	engine "github.com/ambit-go/ambit/async/internal/items"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is about doing the same to every item of a sequence, which may be
// endless. The engine is package items.

// ForEach calls f for every item of a sequence, at the same time or at most [Limit] at
// once, and returns when all have ended.
//
//	err := async.ForEach(ctx, slices.Values(files), check, async.Limit(8))
//
// # Details
//
// The sequence runs on the calling goroutine and is pulled only while fewer than Limit
// items are unfinished.
//
// Every item is a task, as in [ForkJoin]. ForEach returns nil, or what went wrong as
// [Scope] does; a panic of an item cancels the rest and is raised again. By default an
// error stops nobody; with [FailFast] the first cancels the rest, no more is pulled,
// and what was pulled and not begun is not. So it is once ctx is done. If the sequence
// itself panics or calls runtime.Goexit, that goes on when what was begun has been
// cancelled and has ended.
//
// An item that needs its index brings it along, in a sequence of pairs; or use
// [ForkJoin], whose results are in the order of the items:
//
//	type numbered struct { i int; line string }
//	pairs := func(yield func(numbered) bool) {
//		for i, line := range lines { // a slice, or an iter.Seq2
//			if !yield(numbered{i, line}) {
//				return
//			}
//		}
//	}
//	err := async.ForEach(ctx, pairs, check)
func ForEach[A any](
	ctx context.Context, items iter.Seq[A], f func(ctx context.Context, item A) error,
	opts ...ForkOption,
) error {
	if items == nil || f == nil {
		panic("async: ForEach with a nil sequence or function: pass the items and what is to be done with each")
	}
	o := newForkOptions(opts)
	return Scope(ctx, func(ctx context.Context) error {
		work := func(ctx context.Context, a A) (struct{}, error) { return struct{}{}, f(ctx, a) }
		engine.New(ctx.(*tree.Task).Scope(), o.stream(), f, work, engine.InNone).ForEach(items)
		return nil
	}, o.scope...)
}

// Map calls f for every item of a sequence, at the same time or at most [Limit] at
// once, and yields the results in the order of the items.
//
//	for page, err := range async.Map(ctx, slices.Values(urls), fetch, async.Limit(8)) {
//		show(page, err)
//	}
//
// # Details
//
// Map does nothing until it is ranged over; then the sequence runs on the ranging
// goroutine, and is pulled only while fewer than Limit items are unfinished or not yet
// yielded. While it is pulled nothing is yielded, so a sequence that blocks holds up
// results that are ready.
//
// Every item is a task, as in [ForkJoin]; its panic or Goexit is its error. With
// [FailFast] the first error cancels the rest and ends the pulling. When ctx is done
// nothing more is pulled; what was is yielded, with the cause as the error of what was
// not begun by then, and then once, if there may have been more, the zero value with
// an error that matches ctx.Err and its Cause.
//
// Leaving the loop, by whatever way, cancels what was begun with [ErrDecided] and
// joins it before the statement ends. A panic that was not yielded by then is raised.
func Map[A, B any](
	ctx context.Context, items iter.Seq[A], f func(ctx context.Context, item A) (B, error),
	opts ...ForkOption,
) iter.Seq2[B, error] {
	if items == nil || f == nil {
		panic("async: Map with a nil sequence or function: pass the items and what is to be done with each")
	}
	o := newForkOptions(opts)
	return func(yield func(B, error) bool) {
		engine.Iterate(ctx, newScopeOptions(o.scope), items, o.stream(), f, f, engine.InOrder,
			func(r engine.Result[B]) bool { return yield(r.Value, r.Err) })
	}
}

// AsCompleted is [Map] for a sequence of tasks, whose results it yields in the order
// in which they end, each with the index of its task in the sequence.
//
//	for i, result := range async.AsCompleted(ctx, slices.Values(tasks)) {
//		show(i, result.Value, result.Err)
//	}
//
// # Details
//
// After cancellation the error comes with the index of the task that would have been
// next.
func AsCompleted[T any](
	ctx context.Context, tasks iter.Seq[func(context.Context) (T, error)], opts ...ForkOption,
) iter.Seq2[int, Result[T]] {
	if tasks == nil {
		panic("async: AsCompleted with a nil sequence: pass the tasks")
	}
	o := newForkOptions(opts)
	call := func(ctx context.Context, task func(context.Context) (T, error)) (T, error) { return task(ctx) }
	return func(yield func(int, Result[T]) bool) {
		engine.Iterate(ctx, newScopeOptions(o.scope), tasks, o.stream(), "async.AsCompleted", call, engine.AsEnded,
			func(r engine.Result[T]) bool { return yield(r.Index, Result[T](r)) })
	}
}
