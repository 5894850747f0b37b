package taskqueue_test

import (
	"context"
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

type requestKey struct{}

// A requests carries the number of a request.
type requests struct{}

func (requests) Inject(ctx context.Context, headers map[string]string) {
	if id, ok := ctx.Value(requestKey{}).(string); ok {
		headers["request"] = id
	}
}

func (requests) Extract(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, requestKey{}, headers["request"])
}

// The handler knows which request its task is of.
func ExamplePropagate() {
	q, _ := taskqueue.New(memstore.New(), taskqueue.Propagate(requests{}))
	ctx := context.WithValue(context.Background(), requestKey{}, "4711")
	_, _ = q.Enqueue(ctx, taskqueue.Task{Type: "mail"})
	_ = q.Work(context.Background(), taskqueue.Handlers{"mail": func(ctx context.Context, _ *taskqueue.Claim) error {
		fmt.Println("of request", ctx.Value(requestKey{}))
		return nil
	}}, taskqueue.WorkUntilEmpty())
	// Output: of request 4711
}
