// Package pause has a call wait before it tries again. Other than async.Sleep it does not lend the
// slot that a task has of a limit: who gives that away in the middle of a step may hold what
// those with a slot wait for.
package pause

import (
	"context"
	"math/rand/v2"
	"time"
)

// For waits for d, or until ctx is done: then it returns its cause.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Before waits a little before a step that others have spoiled is tried again, and not for the same
// time as they do. It hardly grows with the tries, which are counted from 1: a step that has failed
// often is not to have the worst chances.
func Before(ctx context.Context, try int, unit time.Duration) {
	_ = For(ctx, rand.N(time.Duration(min(try, 10))*unit)) // the step looks at ctx
}
