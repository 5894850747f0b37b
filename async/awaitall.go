package async

import (
	"context"
	"slices"
	"time"
)

// This file is the wait for many futures with one limit.

// AwaitAll awaits futures as [Future.Await] does, all with one limit that
// starts at the call, and returns their outcomes in the order of the
// arguments. When the limit passes or ctx is done, those that have not settled
// are aborted all at once, before any grace is waited for. It blocks no longer
// than timeout and the longest [Grace]. A nil Future or ctx panics; without
// futures the result is empty.
func AwaitAll[T any](ctx context.Context, timeout time.Duration, futures ...*Future[T]) []Result[T] {
	results := make([]Result[T], len(futures))
	var all []*future
	for _, f := range futures {
		all = append(all, f.made("AwaitAll"))
	}
	errs := awaitAll(ctx, timeout, all)
	for i, f := range futures {
		results[i].Index = i
		if errs[i] != nil {
			results[i].Err = errs[i]
		} else {
			results[i].Value, results[i].Err = f.outcome()
		}
	}
	return results
}

// awaitAll returns what to tell of each future; nil where it has settled.
func awaitAll(ctx context.Context, timeout time.Duration, all []*future) []error {
	errs := make([]error, len(all))
	start := time.Now()
	for _, f := range all { // those that it has not come to are waited for, too
		f.wanted.Add(1)
	}
	defer func() {
		for i, f := range all {
			if f.unwant() {
				errs[i] = nil // it has settled, and counts us as given its outcome
			}
		}
	}()
	// The last is waited for first: most often it is the last to settle, and
	// when it has nothing is left to wait for. Measured, of 1,000 tasks each
	// woke us the other way round.
	for i, f := range slices.Backward(all) {
		left := timeout
		if timeout > 0 {
			left = max(timeout-time.Since(start), 1) // even then it looks once more
		}
		switch end, why := f.block(ctx, left, true); end {
		case waitSettled:
		case waitCycle:
			errs[i] = why
		case waitStopped:
			expireAll(ctx, all[:i+1], errs[:i+1], context.Cause(ctx), func(*future) error { return why })
			return errs
		case waitExpired:
			waited := time.Since(start)
			expireAll(ctx, all[:i+1], errs[:i+1], nil, func(f *future) error {
				return f.expired(timeout, waited)
			})
			return errs
		}
	}
	return errs
}

// expireAll tells why of what has not settled and aborts it with cause, if that
// is nil with why itself; then it waits for the graces, which run side by side.
func expireAll(ctx context.Context, all []*future, errs []error, cause error, why func(*future) error) {
	for i, f := range all {
		if f.settled() {
			continue
		}
		errs[i] = why(f)
		if cause != nil {
			f.abort(cause)
		} else {
			f.abort(errs[i])
		}
	}
	start := time.Now()
	for i, f := range all {
		if errs[i] != nil {
			errs[i] = f.linger(ctx, errs[i], start)
		}
	}
}
