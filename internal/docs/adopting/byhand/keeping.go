package byhand

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Connect returns a client that is dead: dial keeps the ctx of the task, which
// ends when dial has returned.
func Connect[C any](ctx context.Context, dial func(ctx context.Context) (C, error)) (C, error) {
	return async.Execute(ctx, dial).Await(ctx, 5*time.Second)
}
