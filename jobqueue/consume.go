package jobqueue

import (
	"context"
	"errors"
	"slices"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Do opens a scope, takes jobs in it as [Queue.Take] does, and calls f with them on
// the calling goroutine.
//
//	err := q.Do(ctx, 10, func(ctx context.Context, files []string) error { return upload(ctx, files) })
//
// # Details
//
// ctx need not carry a scope. When Do returns everything that f has started has ended
// and the jobs are settled: removed if f returned nil and nothing it started failed,
// otherwise back in their places.
//
// Do returns what the scope does, so f's error among others. A panic of f goes on
// when the jobs are back. On a closed queue Do returns [ErrClosed] and does not call
// f. max < 1 and a nil f panic.
func (q *Queue[K, T]) Do(ctx context.Context, max int, f func(ctx context.Context, jobs []T) error) error {
	if f == nil {
		panic("jobqueue: Do with a nil function")
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		jobs, err := q.Take(ctx, max)
		if err != nil {
			return err
		}
		return f(ctx, jobs)
	})
}

// Consume has the given number of workers do what [Queue.Do] does, again and again,
// each on a goroutine of its own, until the queue is closed or drained, or ctx is
// done.
//
//	err := q.Consume(ctx, 4, 10, func(ctx context.Context, files []string) error { return upload(ctx, files) })
//
// # Details
//
// When the queue is closed or drained Consume returns nil. All workers have ended
// when it returns.
//
// An error of f is its batch's affair: the jobs go back and the worker goes on. They
// may be taken again at once, so a job that always fails is tried without end unless
// [MaxAttempts] or [RetryDelay] say otherwise. A panic of f, or Goexit in it, is
// Consume's: the batch goes back, the other workers are cancelled and joined, and
// Consume panics or returns [async.ErrGoexit]. A panic of a function given as an
// option is Consume's in the same way, or its error.
//
// f may do with its ctx what it likes, and what it starts ends with its batch. But
// the ctx is for the batch: if f has left nothing behind, the worker uses the same
// ctx for its next batch, so one that f has kept is not cancelled when the batch
// ends.
//
// workers < 1, max < 1 and a nil f panic.
func (q *Queue[K, T]) Consume(ctx context.Context, workers, max int, f func(ctx context.Context, jobs []T) error) error {
	switch {
	case workers < 1:
		panic("jobqueue: Consume: it needs at least 1 worker")
	case max < 1:
		panic("jobqueue: Consume: it must be allowed to take at least 1 job")
	case f == nil:
		panic("jobqueue: Consume with a nil function")
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		for range workers {
			w := &worker[K, T]{q: q, limit: max, f: f}
			async.Go(ctx, w.run, workerName)
		}
		return nil
	})
}

var workerName = async.Name("jobqueue.Consume")

// A worker is one worker of Consume.
type worker[K comparable, T any] struct {
	q     *Queue[K, T]
	limit int // at most so many jobs at once
	f     func(ctx context.Context, jobs []T) error

	took bool  // the last attempt to take has given jobs
	err  error // what f returned last
}

// run opens one scope after another and does batches in it.
func (w *worker[K, T]) run(ctx context.Context) error {
	for {
		w.took, w.err = false, nil
		err := async.Scope(ctx, w.batches)
		switch {
		case !w.took && errors.Is(err, ErrClosed):
			return nil
		case !w.took:
			return err
		case ctx.Err() != nil:
			return bridge.StopError(ctx)
		case w.hookExited(err):
			return err
		}
	}
}

// hookExited reports whether a hook is among the failures of a batch's scope that has panicked or called Goexit. A panic
// of f itself does not come here, but f may have returned that of a task, or its Goexit.
func (w *worker[K, T]) hookExited(err error) bool {
	failures := []error{err}
	if list, ok := err.(*async.ScopeError); ok {
		failures = list.Errors
	}
	return slices.ContainsFunc(failures, func(failure error) bool {
		var p *async.PanicError
		return errors.As(failure, &p) && !errors.Is(w.err, p) ||
			errors.Is(failure, async.ErrGoexit) && !errors.Is(w.err, async.ErrGoexit)
	})
}

// batches does one batch after another in the scope of ctx. When a batch has gone
// well and left nothing behind, its jobs are settled here and the next batch is
// taken: measured, a scope for each batch costs more than all the rest. In every
// other case the scope ends, and settles the batch.
//
// A cancellation or a hook that comes after the look at the scope and before the
// jobs are settled comes after the end of the batch.
func (w *worker[K, T]) batches(ctx context.Context) error {
	h := w.q.keptHolder(ctx)
	jobs, err := w.q.Take(ctx, w.limit)
	for err == nil {
		w.took = true
		if w.err = w.f(ctx, jobs); w.err != nil {
			return w.err
		}
		// An observer is told in an exit hook, where it may panic.
		if w.q.observer != nil || !bridge.Unused(h.scope, h.atEnd) {
			return nil
		}
		w.took = false
		if jobs, err = w.q.settleAndTake(h, w.limit); jobs == nil && err == nil {
			jobs, err = w.q.Take(ctx, w.limit)
		}
	}
	return err
}

// keptHolder returns the holder of the scope of ctx, which has only begun. It is
// kept until the end of the scope, also while it is idle.
func (q *Queue[K, T]) keptHolder(ctx context.Context) *holder[K, T] {
	scope := bridge.ScopeOf(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holderLocked(scope)
	h.kept = true
	return h
}

// settleAndTake settles what h holds as done and takes what is ready, in one
// turn. It returns nothing if nothing is ready.
func (q *Queue[K, T]) settleAndTake(h *holder[K, T], limit int) ([]T, error) {
	var t turn[K, T]
	q.lock(&t)
	q.settleLocked(h, bridge.Well, nil, &t)
	n := min(limit, q.core.ready.len())
	switch {
	case q.core.closed:
		q.unlock(&t)
		return nil, ErrClosed
	case n == 0:
		q.unlock(&t)
		return nil, nil
	}
	return q.takeReady(h, n, &t), nil
}
