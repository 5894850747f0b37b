package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errGone = errors.New("the receiver is gone")

func carryOn(error) error { return nil }

// The time of the age may be up just before a flush begins, and be told of only when
// that has failed. Such a late timer does not end the rest which follows.
func TestATimerThatComesTooLateDoesNotEndTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(context.Context, []int) error {
				at = append(at, time.Since(begin))
				if len(at) == 1 {
					return errGone
				}
				return nil
			}, Items(1), Age(time.Minute))
			require.NoError(t, b.Add(ctx, 1))
			synctest.Wait()
			b.timeIsUp()
			return async.Sleep(ctx, time.Hour)
		}, async.OnFailure(carryOn)))
		assert.Equal(t, []time.Duration{0, time.Minute}, at)
	})
}

// Those who wait for a flush do not wait for the age, after a failure neither. But a
// receiver that is gone is not called more often than once in a second.
func TestARestIsNoLongerThanASecondForThoseWhoWait(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, b *Batch[int]) error{
		"Flush": func(ctx context.Context, b *Batch[int]) error { return b.Flush(ctx) },
		"Add":   func(ctx context.Context, b *Batch[int]) error { return b.Add(ctx, 2) },
	} {
		for _, late := range []time.Duration{0, afterFailure / 2, 2 * afterFailure} {
			t.Run(name+" "+late.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
						fails := true
						b := New(ctx, func(context.Context, []int) error {
							if fails {
								fails = false
								return errGone
							}
							return nil
						}, Items(1), Capacity(1), Age(time.Hour))
						require.NoError(t, b.Add(ctx, 1))
						synctest.Wait()
						require.NoError(t, async.Sleep(ctx, late))
						begin := time.Now()
						require.NoError(t, wait(ctx, b))
						assert.Equal(t, max(afterFailure-late, 0), time.Since(begin))
						return nil
					}, async.OnFailure(carryOn)))
				})
			})
		}
	}
}

// The batch gives way for 5 ms after it has been busy with items of Do. An item of Add that comes then
// puts off nobody for the age.
func TestAnItemThatComesWhileTheBatchGivesWayPutsNothingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(context.Context, []int) error { time.Sleep(100 * time.Millisecond); return nil }, Age(time.Hour))
			begin := time.Now()
			for range 2 {
				async.Go(ctx, func(ctx context.Context) error {
					for time.Since(begin) < time.Second {
						at := time.Now()
						require.NoError(t, b.Do(ctx, 1))
						assert.Less(t, time.Since(at), time.Second)
					}
					return nil
				})
				synctest.Wait()
			}
			require.NoError(t, async.Sleep(ctx, 302*time.Millisecond)) // three flushes, and 2 of the 5 ms
			require.NoError(t, b.Add(ctx, 2))
			return nil
		}))
	})
}
