package asynctest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A test of code that starts tasks: what it leaves running, or has fail in the background, fails the test.
func ExampleContext() {
	upload := func(ctx context.Context, file string) error { // what is tested
		_, err := async.Start(ctx, func(ctx context.Context) error { return nil }).Await(ctx, 0)
		return err
	}
	_ = func(t *testing.T) { // TestUpload
		ctx := asynctest.Context(t)
		async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) // a server, say
		if err := upload(ctx, "file"); err != nil {
			t.Fatal(err)
		}
	} // here all has ended
}

// The names of what runs.
func ExampleLive() {
	ctx, check := asynctest.Root(context.Background())
	release := make(chan struct{})
	f := async.Start(ctx, func(context.Context) error { <-release; return nil }, async.Name("sweeper"))
	fmt.Println(asynctest.Live(ctx))
	close(release)
	_, err := f.Join(ctx)
	fmt.Println(err, check())
	// Output:
	// [sweeper]
	// <nil> <nil>
}

// A test that waits for something in the background, in virtual time, and shows the tree if it does not come.
func ExampleEventually() {
	_ = func(t *testing.T) { // TestSweeper
		asynctest.Run(t, func(t *testing.T, ctx context.Context) {
			var swept atomic.Bool
			async.Go(ctx, func(ctx context.Context) error {
				defer swept.Store(true)
				return async.Sleep(ctx, time.Hour)
			})
			asynctest.Eventually(t, ctx, 2*time.Hour, swept.Load)
		})
	}
}

// A test in a bubble: a deadlock tells who waits for whom.
func ExampleRun() {
	_ = func(t *testing.T) { // TestUpload
		asynctest.Run(t, func(t *testing.T, ctx context.Context) {
			if _, err := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }).Await(ctx, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A test that nothing which was told to stop is still there.
func ExampleNoStragglers() {
	_ = func(t *testing.T) { // TestStop
		ctx := asynctest.Context(t)
		f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		f.Cancel(nil)
		asynctest.NoStragglers(t, ctx)
	}
}
