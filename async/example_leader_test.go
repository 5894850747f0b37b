package async_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A program of several parts that stops, all of it, when one of them has ended.
func ExampleLeader() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { // serves until it is told to stop
			<-ctx.Done()
			fmt.Println("server stops:", context.Cause(ctx))
			return ctx.Err()
		})
		async.Go(ctx, func(ctx context.Context) error {
			_ = async.Sleep(ctx, time.Millisecond)
			fmt.Println("the job is done")
			return nil
		}, async.Leader())
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// the job is done
	// server stops: async: dismissed
	// error: <nil>
}
