package jobqueue

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Do opens a scope, takes jobs in it as [Queue.Take] does, and calls f with them
// on the calling goroutine. ctx need not carry a scope. When Do returns
// everything that f has started has ended and the jobs are settled: removed if
// f returned nil and nothing it started failed, otherwise back in their places.
//
// Do returns what the scope does, so f's error among others; a panic of f goes
// on when the jobs are back, as a [*async.PanicError]. A queue that is closed
// makes it [ErrClosed], without a call of f. most < 1 and a nil f panic.
func (q *Queue[K, T]) Do(ctx context.Context, most int, f func(ctx context.Context, jobs []T) error) error {
	if f == nil {
		panic("jobqueue: Do with a nil function")
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		jobs, err := q.Take(ctx, most)
		if err != nil {
			return err
		}
		return f(ctx, jobs)
	})
}

// Consume has as many workers as it is told do what [Queue.Do] does, again and
// again, each on a goroutine of its own, until the queue is closed or drained, and
// returns nil then, or until ctx is done. All workers have ended when it
// returns.
//
// An error of f is its batch's affair: the jobs go back and the worker goes on.
// They may be taken again at once, so a job that always fails is tried without
// end unless [MaxAttempts] or [RetryDelay] say otherwise. A panic of f, or
// Goexit in it, is Consume's: the batch goes back, the other workers are
// cancelled and joined, and Consume panics or returns [async.ErrGoexit]. So is
// a panic of a function given as an option. workers < 1, most < 1 and a nil f
// panic.
func (q *Queue[K, T]) Consume(ctx context.Context, workers, most int, f func(ctx context.Context, jobs []T) error) error {
	switch {
	case workers < 1:
		panic("jobqueue: Consume: it needs at least 1 worker")
	case most < 1:
		panic("jobqueue: Consume: it must be allowed to take at least 1 job")
	case f == nil:
		panic("jobqueue: Consume with a nil function")
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		for range workers {
			async.Go(ctx, func(ctx context.Context) error { return q.work(ctx, most, f) }, workerName)
		}
		return nil
	})
}

var workerName = async.Name("jobqueue.Consume")

// work is one worker of Consume.
func (q *Queue[K, T]) work(ctx context.Context, most int, f func(ctx context.Context, jobs []T) error) error {
	for {
		var took bool
		var own error // f's
		err := q.Do(ctx, most, func(ctx context.Context, jobs []T) error {
			took = true
			own = f(ctx, jobs)
			return own
		})
		switch {
		case !took && errors.Is(err, ErrClosed):
			return nil
		case !took:
			return err
		case ctx.Err() != nil:
			return bridge.Told(ctx)
		case errors.As(err, new(*async.PanicError)) && !errors.As(own, new(*async.PanicError)):
			return err // of a hook: f's own panics do not come here
		}
	}
}
