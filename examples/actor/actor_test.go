package main

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
)

// inScope runs test in a scope, which has to end well.
func inScope(t *testing.T, test func(ctx context.Context, s *scheduler.Scheduler)) {
	t.Helper()
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		test(ctx, scheduler.New(scheduler.Goroutines()))
		return nil
	}))
}

// The state is plain memory, so the race detector sees it if functions overlap.
func TestFunctionsOfAnActorRunOneAtATimeInOrder(t *testing.T) {
	const callers, calls = 16, 200
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		type step struct{ caller, call int }
		a := newActor(ctx, s, "log", []step(nil))
		var calling sync.WaitGroup
		for caller := range callers {
			calling.Go(func() {
				for call := range calls {
					if call%2 == 0 {
						assert.NoError(t, a.tell(func(log *[]step) { *log = append(*log, step{caller, call}) }))
						continue
					}
					n, err := ask(ctx, a, func(_ context.Context, log *[]step) (int, error) {
						*log = append(*log, step{caller, call})
						return len(*log), nil
					})
					assert.NoError(t, err)
					assert.Positive(t, n)
				}
			})
		}
		calling.Wait()
		next := make([]int, callers)
		for _, step := range a.state { // the last ask has returned
			require.Equal(t, next[step.caller], step.call)
			next[step.caller]++
		}
		assert.Len(t, a.state, callers*calls)
	})
}

func TestActorGoesOnAfterAPanic(t *testing.T) {
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a := newActor(ctx, s, "a", 0)
		_, err := ask(ctx, a, func(context.Context, *int) (int, error) { panic("boom") })
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "boom", p.Value)
		n, err := ask(ctx, a, func(_ context.Context, state *int) (int, error) { *state++; return *state, nil })
		assert.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

func TestActorThatAsksItselfIsTold(t *testing.T) {
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a := newActor(ctx, s, "a", 0)
		_, err := ask(ctx, a, func(ctx context.Context, _ *int) (int, error) {
			return ask(ctx, a, func(context.Context, *int) (int, error) { return 1, nil })
		})
		assert.ErrorIs(t, err, scheduler.ErrSelfWait)
	})
}

func TestActorEndsWithItsScope(t *testing.T) {
	var a *actor[int]
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		a = newActor(ctx, s, "a", 0)
		require.NoError(t, a.tell(func(state *int) { *state = 5 }))
	})
	assert.Equal(t, 5, a.state, "what was told is done before the scope has ended")
	assert.ErrorIs(t, a.tell(func(*int) {}), scheduler.ErrClosed)
	_, err := ask(t.Context(), a, func(context.Context, *int) (int, error) { return 1, nil })
	assert.ErrorIs(t, err, scheduler.ErrClosed)
}
