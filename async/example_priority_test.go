package async_test

import (
	"context"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// One slot, and three tasks that queue for it: the urgent one is next.
func ExamplePriority() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		started := make(chan struct{})
		async.Go(ctx, func(context.Context) error { <-started; return nil })
		say := func(s string) func(context.Context) error {
			return func(context.Context) error { fmt.Println(s); return nil }
		}
		async.Go(ctx, say("nightly build"), async.Priority(-1))
		async.Go(ctx, say("build of a branch"))
		async.Go(ctx, say("build of a release"), async.Priority(1))
		close(started)
		return nil
	}, async.Limit(1))
	// Output:
	// build of a release
	// build of a branch
	// nightly build
}
