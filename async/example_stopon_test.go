package async_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// A type that is closed by a channel runs its work in a scope that ends with it.
func ExampleStopOn() {
	errClosed := errors.New("connection closed")
	closing := make(chan struct{})
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, async.Name("reader"))
		close(closing) // by whoever closes the connection
		return nil
	}, async.StopOn(closing, errClosed))
	fmt.Println(errors.Is(err, errClosed), err)
	// Output:
	// true async: scope: connection closed
}
