package tree

import (
	"context"
	"slices"
	"time"
)

// This file is what the holder of a future does that has not settled in time: it aborts the task,
// and waits for its grace.

// Expire ends the wait of a holder that was over before f had settled, for why: it
// aborts f, waits for its grace, and returns what the holder is told; nil if f
// has settled after all.
func (f *Future) Expire(ctx context.Context, why error, end waitEnd) error {
	switch end {
	case waitCycle:
		return why
	case WaitStopped:
		f.abort(context.Cause(ctx))
	default:
		f.abort(why)
	}
	return f.linger(ctx, why, time.Now())
}

// abort asks f to stop because of cause.
func (f *Future) abort(cause error) { f.Task.Scope().Cancel(Canceled(cause)) }

// linger waits the rest of f's grace, which began at start, and returns nil if
// f has settled by then, else notes that why was told.
func (f *Future) linger(ctx context.Context, why error, start time.Time) error {
	if m := f.Task.More; m != nil && m.Grace > 0 {
		if left := m.Grace - time.Since(start); left > 0 {
			_, _ = f.Block(context.WithoutCancel(ctx), left, false)
		}
	}
	if !f.TellHolder(why) {
		_, _ = f.Block(context.WithoutCancel(ctx), 0, false) // it has settled, or is about to
		return nil
	}
	return why
}

// AwaitAll returns what to tell of each future; nil where it has settled.
func AwaitAll(ctx context.Context, timeout time.Duration, all []*Future) []error {
	errs := make([]error, len(all))
	start := time.Now()
	for _, f := range all { // those that it has not come to are waited for, too
		f.Wanted.Add(1)
	}
	defer func() {
		for i, f := range all {
			if f.Unwant() {
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
		switch end, why := f.Block(ctx, left, true); end {
		case waitSettled:
		case waitCycle:
			errs[i] = why
		case WaitStopped:
			expireAll(ctx, all[:i+1], errs[:i+1], context.Cause(ctx), func(*Future) error { return why })
			return errs
		case waitExpired:
			waited := time.Since(start)
			expireAll(ctx, all[:i+1], errs[:i+1], nil, func(f *Future) error {
				return f.expired(timeout, waited)
			})
			return errs
		}
	}
	return errs
}

// expireAll tells why of what has not settled and aborts it with cause, if that
// is nil with why itself; then it waits for the graces, which run side by side.
func expireAll(ctx context.Context, all []*Future, errs []error, cause error, why func(*Future) error) {
	for i, f := range all {
		if f.Settled() {
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
