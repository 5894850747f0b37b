package taskqueue_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

type traceKey struct{}

// A carrier carries the trace of a context.
type carrier struct{}

func (carrier) Inject(ctx context.Context, headers map[string]string) {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		headers["trace"] = id
	}
}

func (carrier) Extract(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, traceKey{}, "from "+headers["trace"])
}

// The values of the ctx of Enqueue are in the ctx of the handler; the headers that the caller has are as they were.
func TestPropagateCarriesTheContext(t *testing.T) {
	q, err := taskqueue.New(memstore.New(), taskqueue.Propagate(carrier{}))
	require.NoError(t, err)
	own := map[string]string{"tenant": "a"}
	ctx := context.WithValue(context.Background(), traceKey{}, "7")
	for _, task := range []taskqueue.Task{{Type: "with"}, {Type: "with", Headers: own}} {
		_, err = q.Enqueue(ctx, task)
		require.NoError(t, err)
	}
	_, err = q.Enqueue(context.Background(), taskqueue.Task{Type: "without"})
	require.NoError(t, err)
	seen := map[string]int{}
	handler := func(ctx context.Context, c *taskqueue.Claim) error {
		seen[ctx.Value(traceKey{}).(string)+" tenant "+c.Headers["tenant"]]++
		if c.Type == "without" {
			require.Empty(t, c.Headers)
		}
		return nil
	}
	handlers := taskqueue.Handlers{"with": handler, "without": handler}
	require.NoError(t, q.Work(context.Background(), handlers, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(1)))
	require.Equal(t, map[string]int{"from 7 tenant ": 1, "from 7 tenant a": 1, "from  tenant ": 1}, seen)
	require.Equal(t, map[string]string{"tenant": "a"}, own)
}

// A propagator that panics stops the worker, with its panic.
func TestPropagatePanics(t *testing.T) {
	q, err := taskqueue.New(memstore.New(), taskqueue.Propagate(panicking{}))
	require.NoError(t, err)
	_, err = q.Enqueue(context.Background(), taskqueue.Task{Type: "t"})
	require.NoError(t, err)
	handlers := taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error { return nil }}
	var raised any
	func() {
		defer func() { raised = recover() }()
		_ = q.Work(context.Background(), handlers)
	}()
	require.ErrorIs(t, raised.(error), errBoom)
	require.Panics(t, func() { taskqueue.Propagate(nil) })
}

type panicking struct{ carrier }

func (panicking) Extract(context.Context, map[string]string) context.Context { panic(errBoom) }
