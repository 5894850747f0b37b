package batch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
)

func TestMisusePanicsAndSaysWhatToDo(t *testing.T) {
	flush := func(context.Context, []int) error { return nil }
	answering := func(context.Context, []int) []error { return nil }
	var none context.Context
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		b := batch.New(ctx, flush)
		for text, f := range map[string]func(){
			"batch: New on a context without a scope: call it with the ctx of async.Scope or of a task": func() {
				batch.New(context.Background(), flush)
			},
			"batch: NewAnswering on a context without a scope: call it with the ctx of async.Scope or of a task": func() {
				batch.NewAnswering(context.Background(), answering)
			},
			"batch: NewAnswering with a nil function: pass what is to be called":                         func() { batch.NewAnswering[int](ctx, nil) },
			"batch: NewAnswering: an option is nil: leave it out instead":                                func() { batch.NewAnswering(ctx, answering, nil) },
			"batch: Do with a nil ctx: pass that of the task that waits":                                 func() { _ = b.Do(none, 1) },
			"batch: New with a nil function: pass what is to be called":                                  func() { batch.New[int](ctx, nil) },
			"batch: New: an option is nil: leave it out instead":                                         func() { batch.New(ctx, flush, nil) },
			"batch: Items(n): n must be at least 1; leave the option out for no limit":                   func() { batch.Items(0) },
			"batch: Capacity(n): n must be at least 1; leave the option out for no limit":                func() { batch.Capacity(-1) },
			"batch: Age(d): d must be more than 0; leave the option out for no limit":                    func() { batch.Age(0) },
			"batch: Size(n): n must be at least 1; leave the option out for no limit":                    func() { batch.Size(0, func(int) int { return 1 }) },
			"batch: Size with a nil function: pass one that returns the size of an item":                 func() { batch.Size[int](1, nil) },
			"batch: Size was given a func(string) int, but the items of this batch need a func(int) int": func() { batch.New(ctx, flush, batch.Size(1, func(string) int { return 1 })) },
			"batch: Add with a nil ctx: pass that of the task that adds":                                 func() { _ = b.Add(none, 1) },
			"batch: Flush with a nil ctx: pass that of the task that waits":                              func() { _ = b.Flush(none) },
		} {
			assert.PanicsWithValue(t, text, f)
		}
		assert.Panics(t, func() { batch.New(none, flush) })
		return nil
	})
	require.NoError(t, err)
}

// A size that panics leaves the batch as it was.
func TestASizeThatPanicsAddsNothing(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		assert.PanicsWithValue(t, "odd", func() { _ = b.Add(ctx, 2, 3) })
		return b.Add(ctx, 4)
	}, batch.Size(100, func(i int) int {
		if i%2 == 1 {
			panic("odd")
		}
		return i
	}), batch.Age(time.Second))
	require.NoError(t, err)
	assert.Equal(t, []int{4}, s.delivered())
}

func TestTheLastOptionOfAKindCounts(t *testing.T) {
	s, err := inScope(t, func(ctx context.Context, b *batch.Batch[int], s *sink) error {
		add(t, ctx, b, 1, 2, 3)
		return nil
	}, batch.Items(1), batch.Items(100))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{1, 2, 3}}, s.calls())
}
