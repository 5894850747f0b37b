package asynctest_test

import (
	"context"
	"fmt"
	"testing"

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
