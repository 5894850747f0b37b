package async_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// A scope's waits, one after another, share a timer that is left to run. These
// tests look for what that could get wrong: an earlier wait's timer that ends a
// later wait, or a later wait that is not ended in time.

// sleeper returns a handler that sleeps d and heeds its context.
func sleeper(d time.Duration) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		select {
		case <-time.After(d):
			return d, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func TestEachWaitOfAScopeHasItsOwnLimit(t *testing.T) {
	tests := map[string][]struct{ work, limit time.Duration }{
		"a longer one after a short one":    {{1, 10}, {50, 100}, {50, 100}},
		"a shorter one after a long one":    {{1, 1000}, {50, 20}, {1, 1000}, {10, 5}},
		"expired, then not":                 {{100, 10}, {5, 10}, {100, 10}, {11, 12}},
		"none after one":                    {{1, 10}, {100, 0}, {100, 10}},
		"the same instant as an old timer":  {{1, 10}, {9, 0}, {50, 20}},
		"the largest there is":              {{1, math.MaxInt64}, {5, math.MaxInt64}, {10, 3}, {5, math.MaxInt64}},
		"a nanosecond":                      {{10, 1}, {1, 10}, {10, 1}},
		"shorter and shorter, all in time":  {{1, 90}, {1, 80}, {1, 70}, {200, 60}},
		"longer and longer, then too short": {{1, 10}, {1, 20}, {1, 30}, {200, 4}, {200, 300}},
	}
	for name, waits := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					for _, w := range waits {
						checkWait(t, ctx, w.work, w.limit)
					}
					return nil
				})
				require.NoError(t, err)
			})
		})
	}
}

// TestRandomWaitsEndWhenTheyShould tries what the table does not name.
func TestRandomWaitsEndWhenTheyShould(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			err := async.Scope(t.Context(), func(ctx context.Context) error {
				for range 40 { // in even numbers, because an expired wait looks again a nanosecond later
					if r.IntN(4) == 0 {
						time.Sleep(time.Duration(r.IntN(50)))
					}
					checkWait(t, ctx, 2*time.Duration(r.IntN(50)), 2*time.Duration(r.IntN(50)))
				}
				return nil
			})
			require.NoError(t, err, "seed %d", seed)
		})
	}
}

// checkWait awaits work with a limit and checks what comes and when.
func checkWait(t *testing.T, ctx context.Context, work, limit time.Duration) {
	t.Helper()
	start := time.Now()
	got, err := async.Execute(ctx, sleeper(work)).Await(ctx, limit)
	took := time.Since(start)
	if limit == 0 || work <= limit {
		require.NoError(t, err)
		require.Equal(t, work, got)
		require.Equal(t, work, took)
		return
	}
	var expired *async.TimeoutError
	require.True(t, errors.As(err, &expired), "work %v, limit %v, took %v: %v", work, limit, took, err)
	require.Equal(t, limit, expired.Limit)
	require.Equal(t, limit, expired.Waited)
	require.Equal(t, limit+1, took)
}
