package adopting

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Follow calls handle with every message, until it fails or ctx is done.
// subscribe has its function called on goroutines of its own, and now and then
// once more after it was told to stop.
func Follow(
	ctx context.Context,
	subscribe func(func(message string)) (stop func()),
	handle func(ctx context.Context, message string) error,
) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		messages := make(chan string) // never closed
		stop := subscribe(func(message string) {
			select {
			case messages <- message:
			case <-ctx.Done(): // also when the scope has ended
			}
		})
		defer stop()
		for {
			select {
			case message := <-messages:
				if err := handle(ctx, message); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// Ask waits for an answer that comes by a callback, at most 1 s. A later answer
// is dropped.
func Ask(ctx context.Context, ask func(answered func(answer string, err error))) (answer string, err error) {
	err = async.Scope(ctx, func(ctx context.Context) error {
		future, promise := async.NewPromise[string](ctx)
		ask(func(answer string, err error) {
			if err != nil {
				promise.Reject(err)
			} else {
				promise.Resolve(answer)
			}
		})
		answer, err = future.Await(ctx, time.Second)
		return err
	})
	return answer, err
}
