package kvqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// An item that Take claims is settled in turn with the exit hooks, last in, first out.
func TestItemsOfATakeAreSettledInTheOrderOfTheExitHooks(t *testing.T) {
	for name, take := range takes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := open(t, newStore(t), "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				claimed := func(ctx context.Context) int {
					n, err := q.Len(ctx)
					assert.NoError(t, err)
					return n.Claimed
				}
				var order []int
				hook := func(ctx context.Context, _ error) error {
					order = append(order, claimed(ctx))
					return nil
				}
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
					async.OnExit(ctx, hook)
					_, err := take(q, ctx, 1)
					async.OnExit(ctx, hook)
					return err
				}))
				assert.Equal(t, []int{1, 0}, order)
			})
		})
	}
}

// The exit hooks of a handler belong to its run.
func TestARunWhoseExitHookFailsIsAFailedAttempt(t *testing.T) {
	fails := func(ctx context.Context) {
		async.OnExit(ctx, func(context.Context, error) error { return errFails })
	}
	for name, run := range map[string]func(ctx context.Context, q *kvqueue.Queue) error{
		"Do": func(ctx context.Context, q *kvqueue.Queue) error {
			return q.Do(ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error { fails(ctx); return nil })
		},
		"Take": func(ctx context.Context, q *kvqueue.Queue) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				_, err := q.Take(ctx, 1)
				fails(ctx) // is run before the items are settled
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				q := open(t, kv, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				assert.Equal(t, errFails, run(t.Context(), q))
				assert.Equal(t, 2, nextAttempt(t, kv))
			})
		})
	}
}

// A nil context is a mistake of the program, as in every package.
func TestATakeOnANilContextPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, newStore(t), "q")
		var none context.Context
		for name, take := range takes {
			assert.Panics(t, func() { _, _ = take(q, none, 1) }, name)
		}
	})
}
