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

// The work of a request ends with the session that it belongs to, too, and says why.
func ExampleStopWith() {
	errLoggedOut := errors.New("logged out")
	session, logOut := context.WithCancelCause(context.Background())
	request := context.Background()
	err := async.Scope(request, func(ctx context.Context) error {
		logOut(errLoggedOut)
		<-ctx.Done()
		return ctx.Err()
	}, async.StopWith(session))
	fmt.Println(errors.Is(err, errLoggedOut), err)
	// Output:
	// true async: scope: logged out
}
