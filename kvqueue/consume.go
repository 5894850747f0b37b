package kvqueue

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Consume has the given number of workers do what [Queue.Do] does, again and again, each on
// a goroutine of its own, until ctx ends or the handle is closed; then it returns nil in
// the second case, and in the first an error that matches those of ctx. All workers have
// ended when it returns.
//
// An error of f is its batch's affair: the items go back, and the worker goes on. So does it
// when claims were lost, or the store cannot be reached: it tries again, with growing pauses of
// up to a second, and [Queue.Trouble] and the observer say so; if ctx ends meanwhile the error
// matches that of the store, too. A panic of f, or Goexit in it, is Consume's: the batch goes back, the
// other workers are cancelled and joined, and Consume panics or returns
// [async.ErrGoexit]. If a function that was given as an option has panicked, Consume ends with
// an [*async.PanicError].
//
// workers < 1, most < 1 and a nil f are an [*InvalidError].
func (q *Queue) Consume(ctx context.Context, workers, most int, f func(ctx context.Context, items []Item) error) error {
	switch {
	case workers < 1:
		return invalid("workers", "%d is less than 1", workers)
	case most < 1:
		return invalid("most", "%d is less than 1", most)
	case f == nil:
		return invalid("f", "it is nil: pass what is to be done with the items")
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		for range workers {
			async.Go(ctx, func(ctx context.Context) error { return q.worker(ctx, most, f) }, async.Name("kvqueue.Consume"))
		}
		return nil
	})
}

func (q *Queue) worker(ctx context.Context, most int, f func(ctx context.Context, items []Item) error) error {
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	var next *waiter // for the items after those that are being acknowledged; nil: there is none yet
	for failures := 0; ; {
		items, err := q.next(ctx, most, next)
		next = nil
		switch {
		case errors.Is(err, ErrClosed):
			return nil
		case err != nil && ctx.Err() != nil: // with items it goes on, to give them back
			if errors.Is(err, ctx.Err()) { // it says all there is
				return err
			}
			return q.stop(ctx)
		case err != nil:
			failures++
			if async.Sleep(ctx, pause(failures)) != nil {
				return q.stop(ctx)
			}
			continue
		}
		failures = 0
		_ = q.in(ctx, items, f, func() { // the observer hears of its error
			// The claim of the next items takes the acknowledgement of these along.
			if w := newWaiter(most, false); q.enlist(ctx, w) == nil {
				next = w
			}
		})
		if err := q.brokenBy(); err != nil {
			q.dismiss(next)
			return err
		}
		if ctx.Err() != nil {
			q.dismiss(next)
			return stop(ctx)
		}
	}
}

// next claims items, by a waiter if there is one already.
func (q *Queue) next(ctx context.Context, most int, w *waiter) ([]Item, error) {
	if w == nil {
		return q.claims(ctx, most, false)
	}
	return q.served(ctx, w)
}
