package async_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

func TestSleep(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		require.NoError(t, async.Sleep(ctx, time.Hour))
		require.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, async.Sleep(ctx, 0))
		require.NoError(t, async.Sleep(ctx, -1))
		require.Equal(t, time.Hour, time.Since(start))

		f := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, math.MaxInt64) })
		time.Sleep(time.Second)
		f.Cancel(errCancelBoom)
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, errCancelBoom)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Hour+time.Second, time.Since(start))

		done, cancel := context.WithCancelCause(ctx)
		cancel(errCancelWhy)
		require.ErrorIs(t, async.Sleep(done, 0), errCancelWhy)
		require.ErrorIs(t, async.Sleep(done, 1), errCancelWhy)

		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		require.ErrorIs(t, async.Sleep(short, time.Minute), context.DeadlineExceeded)
		require.Equal(t, time.Hour+2*time.Second, time.Since(start))
	})
}

// TestSleepersLendTheirSlots and get one back in turn.
func TestSleepersLendTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var running atomic.Int32
		work := func() {
			if running.Add(1) > 1 {
				t.Error("two run at once")
			}
			time.Sleep(time.Second)
			running.Add(-1)
		}
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for range 10 {
				async.Go(ctx, func(ctx context.Context) error {
					work()
					if err := async.Sleep(ctx, time.Minute); err != nil {
						return err
					}
					work()
					return nil
				})
			}
			return nil
		}, async.Limit(1)))
		require.Equal(t, time.Minute+11*time.Second, time.Since(start))
	})
}

// TestASleepCutShortInTheQueueOfALimit returns at once, though all slots are
// taken.
func TestASleepCutShortInTheQueueOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f := async.Start(ctx, func(ctx context.Context) error {
				err := async.Sleep(ctx, time.Second) // after which the other has the slot
				require.Equal(t, 2*time.Second, time.Since(start))
				return err
			})
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
			time.Sleep(2 * time.Second)
			f.Cancel(errCancelBoom)
			return nil
		}, async.Limit(1)))
		require.Equal(t, time.Hour, time.Since(start))
	})
}

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

// TestAWaitInABubbleAndOneOutside: a scope that lives outside a bubble may be
// waited in inside one, and the other way round. Their clocks have nothing in
// common, and a timer of the one may not be touched in the other.
func TestAWaitInABubbleAndOneOutside(t *testing.T) {
	inside := func(t *testing.T, ctx context.Context) {
		synctest.Test(t, func(t *testing.T) {
			checkWait(t, ctx, time.Hour, 10*time.Second)
			checkWait(t, ctx, time.Second, time.Minute)
			time.Sleep(2 * time.Hour) // until no timer is left
		})
	}
	outside := func(t *testing.T, ctx context.Context) {
		_, err := async.Execute(ctx, sleeper(time.Millisecond)).Await(ctx, time.Minute)
		require.NoError(t, err)
	}
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		for range 3 {
			outside(t, ctx)
			inside(t, ctx)
			inside(t, ctx)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestALazyTimerNeverEndsAWaitEarly uses the real clock, because in a bubble
// every wait has a timer of its own.
func TestALazyTimerNeverEndsAWaitEarly(t *testing.T) {
	never := make(chan struct{})
	stuck := func(ctx context.Context) (int, error) {
		select {
		case <-never:
			return 0, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		r := rand.New(rand.NewPCG(1, 1))
		for range 100 {
			limit := time.Duration(r.IntN(3)+1) * time.Millisecond
			if r.IntN(2) == 0 { // in time, and its timer runs on
				_, err := async.Execute(ctx, func(context.Context) (int, error) { return 1, nil }).Await(ctx, limit+time.Minute)
				require.NoError(t, err)
			}
			if r.IntN(4) == 0 {
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
			}
			start := time.Now()
			_, err := async.Execute(ctx, stuck).Await(ctx, limit)
			require.GreaterOrEqual(t, time.Since(start), limit)
			var expired *async.TimeoutError
			require.ErrorAs(t, err, &expired)
		}
		return nil
	})
	require.NoError(t, err)
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
