package kvqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// claims claims at least one item and at most so many, in the order of the queue. It blocks
// until there is one; with try it returns none at once.
func (q *Queue) claims(ctx context.Context, most int, try bool) ([]Item, error) {
	if most < 1 {
		return nil, invalid("most", "%d is less than 1", most)
	}
	if err := ctx.Err(); err != nil {
		return nil, stop(ctx)
	}
	w := newWaiter(most, try)
	if err := q.enlist(ctx, w); err != nil {
		return nil, err
	}
	return q.served(ctx, w)
}

// enlist has w wait for items.
func (q *Queue) enlist(ctx context.Context, w *waiter) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.waiters = append(q.waiters, w)
	q.mu.Unlock()
	err := q.serveWaiters(ctx)
	switch {
	case err == nil || !q.unlist(w): // it has an answer
		return nil
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return q.stop(ctx)
	default:
		return err
	}
}

// served waits until w, or another in its place, has items, or the end of ctx.
func (q *Queue) served(ctx context.Context, w *waiter) ([]Item, error) {
	for {
		items, err := q.wait(ctx, w)
		if !errors.Is(err, errAgain) {
			return items, err
		}
		w = newWaiter(w.most, w.try)
		if err := q.enlist(ctx, w); err != nil {
			return nil, err
		}
	}
}

// wait waits for the answer to w, or the end of ctx. If both came, what was handed over is
// given back.
func (q *Queue) wait(ctx context.Context, w *waiter) ([]Item, error) {
	select {
	case <-w.done:
		return w.items, w.err
	case <-ctx.Done():
	}
	q.dismiss(w)
	q.nudge() // a place that nobody has is given up
	return nil, q.stop(ctx)
}

// stop is the error of a call whose ctx has ended. It matches that of ctx, and its cause.
func stop(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("kvqueue: %w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// dismiss takes back what a waiter waits for, which may be nil, or gives back what it has.
func (q *Queue) dismiss(w *waiter) {
	if w != nil && !q.unlist(w) {
		<-w.done
		q.giveBack(w.items)
	}
}

// giveBack puts items back into their places, behind the caller's back: no attempt is
// spent. When it returns they count for no place any more: else another would come where they were.
func (q *Queue) giveBack(items []Item) {
	all, _ := beginAll(items, returned, nil)
	if len(all) == 0 {
		return
	}
	err := q.returns.Go(func(ctx context.Context) error {
		_ = settleClaims(ctx, all) // or the session ends, and they go back then
		return nil
	})
	for _, s := range all {
		if err != nil { // the handle is closed
			s.claim.finish(held)
		}
	}
}

// Do claims at least one item and at most so many, in the order of the queue, and calls f
// with them, in a scope of its own, on the calling goroutine. It blocks until there is an
// item, ctx ends (then its error matches those of ctx), or the handle is closed
// ([ErrClosed]). If the store is in trouble when ctx ends the error matches that of
// [Queue.Trouble], too: so a store that does not answer does not look like an empty queue. On a full store, where
// nothing can be claimed, it returns [ErrNoSpace]; if no session can be begun, the error of the store. Calls of one
// handle are served first come, first served. Several processes are given items in the order in which they came to
// wait for some.
//
// When f, and everything that it has started, has ended well, what is not settled yet is
// acknowledged: the items are gone from the queue. (Those for which [Queue.Nack] has failed go
// back. An Ack or Nack that has returned [ErrUnknown] may be on its way: Do waits for what comes of it.)
// If it failed, panicked or called Goexit
// they go back to their places, one attempt later; if it was told to stop they go back
// and no attempt is spent. Do returns the error of f, or of the settling; one that matches those
// of ctx if f has returned nil and items went back; a panic of f goes on when the items are
// back. An item that was tried before comes alone.
//
// The context of f is cancelled, with a [*LostError] as its cause, if this process could not
// tell the store in time that it lives: before anybody else can claim the items. Then Do
// returns an error that matches [ErrLost] even if f returned nil, unless everything was
// settled before.
//
// If the queue has a [TimeLimit], and f takes longer, its context is cancelled, and it has failed, whatever it returns.
//
// most < 1 is an [*InvalidError], and a nil f panics.
func (q *Queue) Do(ctx context.Context, most int, f func(ctx context.Context, items []Item) error) error {
	if f == nil {
		panic("kvqueue: Do with a nil function: pass what is to be done with the items")
	}
	items, err := q.claims(ctx, most, false)
	if err != nil {
		return err
	}
	return q.in(ctx, items, f, func() {})
}

// in calls f with items in a scope, and settles them by its end. It calls finished as it
// acknowledges them: not if they go back.
func (q *Queue) in(
	ctx context.Context, items []Item, f func(ctx context.Context, items []Item) error, finished func(),
) (err error) {
	l := items[0].claim.session
	how := async.Stopped // f may be told to stop before it has begun
	ended := false
	defer func() {
		if !ended { // a panic or Goexit
			_, _ = settleAll(context.WithoutCancel(ctx), items, failed, errPanic, func() {})
		}
	}()
	err = async.Scope(ctx, func(ctx context.Context) error {
		stop := q.limit(ctx, items)
		async.OnExit(ctx, func(_ context.Context, outcome error) error { // the last hook that is run
			stop()
			how = async.EndingOf(outcome)
			return nil
		})
		return f(ctx, items)
	}, async.Name("kvqueue "+q.name), async.StopWith(l.lost))
	ended = true
	v := verdictOf(how)
	left, late := settleAll(context.WithoutCancel(ctx), items, v, err, func() {
		if v == done {
			finished()
		}
	})
	switch {
	case late != nil && !matches(err, ErrLost):
		err = errors.Join(err, late)
	case err == nil && left && v == returned: // f has returned nil, and its caller must not think that they are done
		err = stop(ctx)
	}
	return err
}

// verdictOf returns what becomes of the items of a scope that ended so: a run that was told
// to stop has not failed, and is not done either.
func verdictOf(how async.Ending) verdict {
	switch how {
	case async.Stopped:
		return returned
	case async.Failed:
		return failed
	default:
		return done
	}
}

// matches is errors.Is for errors of users, whose methods may panic.
func matches(err, target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

var errPanic = errors.New("kvqueue: the handler panicked or called Goexit")
