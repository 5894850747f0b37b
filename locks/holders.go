package locks

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/ambit-go/ambit/locks/internal/pause"
)

// watchTime is how long Observe waits between two questions.
const watchTime = time.Second

// Observe yields who holds a lock, in the order in which they were granted it: now, and each
// time that somebody else does, or nobody, or that a lease was revoked. It asks the store once
// a second, so what lasts less long may be missed, and a renewal is no change. It ends with ctx
// or with the loop.
//
// A question that fails is yielded as an error, once until one succeeds. [ErrValidation], and
// what else does not go by itself, ends it.
func (m *Manager) Observe(ctx context.Context, key string) iter.Seq2[[]Grant, error] {
	return func(yield func([]Grant, error) bool) {
		var last []Grant
		var failed error
		for first := true; ctx.Err() == nil; _ = pause.For(ctx, watchTime) {
			holders, err := m.Holders(ctx, key)
			if errors.Is(err, ErrNotFound) {
				err = nil
			}
			if ctx.Err() != nil {
				return
			}
			changed := err == nil && (first || failed != nil || !slices.EqualFunc(last, holders, sameLease))
			if (changed || err != nil && failed == nil) && !yield(holders, err) || err != nil && !transient(err) {
				return
			}
			if failed = err; err == nil {
				first, last = false, holders
			}
		}
	}
}

func sameLease(a, b Grant) bool { return a.Fence == b.Fence && a.Revoked == b.Revoked }
