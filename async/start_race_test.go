package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestAStartThatRacesTheEndIsJoinedOrRefused has bare goroutines start tasks in
// a scope that drains, is cancelled, or ends. Each start must either run and be
// over when Scope returns, or be refused.
func TestAStartThatRacesTheEndIsJoinedOrRefused(t *testing.T) {
	const rounds, starts = 11_200, 9 // 100,000 starts
	for round := range rounds {
		var running, ran, refused atomic.Int32
		var bare sync.WaitGroup
		var ended atomic.Bool
		task := func(context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			if ended.Load() {
				t.Error("a task runs after its scope has returned")
			}
			ran.Add(1)
			return nil
		}
		_ = async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range starts {
				bare.Go(func() { refused.Add(startOne(ctx, i, task)) })
			}
			if round%2 == 0 {
				return errors.New("cancelled")
			}
			return nil
		})
		require.Zero(t, running.Load(), "Scope returned before a task")
		ended.Store(true)
		bare.Wait()
		require.EqualValues(t, starts, ran.Load()+refused.Load(), "a start was neither run nor refused")
	}
}

// startOne starts task in one of several ways; 1 if it was refused.
func startOne(ctx context.Context, way int, task func(context.Context) error) (refused int32) {
	switch way % 3 {
	case 0:
		defer func() {
			if recover() != nil {
				refused = 1
			}
		}()
		async.Go(ctx, task)
	case 1:
		if _, err := async.Start(ctx, task).Wait(context.Background()); errors.Is(err, async.ErrScopeEnded) {
			return 1
		}
	case 2:
		if err := async.Scope(ctx, task); errors.Is(err, async.ErrScopeEnded) {
			return 1
		}
	}
	return 0
}

// TestAHookOrPromiseThatRacesTheEndIsNotLost has bare goroutines register exit
// hooks and make promises in a scope that ends. Every hook runs once: before
// Scope returns, or at once on who came too late. Every promise settles.
func TestAHookOrPromiseThatRacesTheEndIsNotLost(t *testing.T) {
	const each = 5
	for round := range fewer(20_000, 1_000) {
		var joined, late, settled atomic.Int32
		var bare sync.WaitGroup
		var ended atomic.Bool
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			for range each {
				bare.Go(func() {
					async.OnExit(ctx, func(_ context.Context, outcome error) error {
						if errors.Is(outcome, async.ErrScopeEnded) {
							late.Add(1)
							return nil
						}
						if ended.Load() {
							t.Error("a hook runs after its scope has returned")
						}
						joined.Add(1)
						return nil
					})
				})
				bare.Go(func() {
					f, p := async.NewPromise[int](ctx)
					won := p.Resolve(7)
					v, err := f.Wait(context.Background())
					switch {
					case won && v == 7 && err == nil:
					case !won && (errors.Is(err, async.ErrScopeEnded) || errors.Is(err, async.ErrAbandoned)):
					default:
						t.Errorf("Resolve said %t, Wait gave %v, %v", won, v, err)
					}
					settled.Add(1)
				})
			}
			if round%2 == 0 {
				runtime.Gosched()
			}
			return nil
		})
		before := joined.Load()
		ended.Store(true)
		bare.Wait()
		if err != nil { // somebody waited for a promise in the instant it was abandoned
			require.ErrorIs(t, err, async.ErrAbandoned)
		}
		require.Equal(t, before, joined.Load(), "Scope returned before a hook")
		require.EqualValues(t, each, joined.Load()+late.Load(), "a hook was lost or ran twice")
		require.EqualValues(t, each, settled.Load())
	}
}
