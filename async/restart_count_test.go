package async_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestTheLimitOfFailuresEndsATaskWithTheLast(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				err := start(ctx, func(context.Context) error { runs++; return fmt.Errorf("%w: %d", errRun, runs) },
					async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("worker"))
				require.Equal(t, 3, runs)
				var e *async.RestartError
				require.ErrorAs(t, err, &e)
				require.Equal(t, 3, e.Failures)
				require.ErrorIs(t, err, errRun)
				require.EqualError(t, err, "async: worker: given up after 3 failures within 1m0s; last failure: the run failed: 3")
			})
		})
	}
}

func TestTheDefaultIsFiveFailuresInAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(1000, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(14 * time.Second)})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.EqualValues(t, 5, runs.Load())
		f, runs = failing(99, nil)
		_, err = async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(16 * time.Second)})).Join(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 100, runs.Load())
	})
}

// TestAWindowForgets: two quick failures, then a pause; it is only the third
// within the window that counts.
func TestAWindowForgets(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var asked []int
		waits := []time.Duration{1, 20, 1, 20, 1, 1}
		f, runs := failing(1000, nil)
		_, err := async.Start(ctx, f, async.Name("w"), async.Restart(async.RestartPolicy{Interval: func(n int) time.Duration {
			asked = append(asked, n)
			return waits[n-1] * time.Second
		}, Attempts: 3, Within: 10 * time.Second})).Join(ctx)
		require.EqualValues(t, 7, runs.Load())
		require.Equal(t, []int{1, 2, 3, 4, 5, 6}, asked)
		require.EqualError(t, err, "async: w: given up after 7 failures, 3 of them within 10s; last failure: the run failed")
	})
}

func TestWithin0IsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(10_000, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(0), Within: -1})).Join(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 10_001, runs.Load())
	})
}

func TestAStormOfRestartsIsBounded(t *testing.T) {
	for name, in := range map[string]async.Interval{
		"zero":     async.Every(0),
		"negative": async.Every(-time.Hour),
		"backoff":  async.Backoff(0, 0),
		"jitter":   async.Jitter(1, async.Every(0)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				f, runs := failing(100, nil)
				_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: in, Within: -1})).Join(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 101, runs.Load())
				require.Equal(t, 100*time.Millisecond, time.Since(begin))
			})
		})
	}
}

func TestTheBackoffGrowsUntilARunWasHealthy(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var asked []int
		runs := 0
		lasts := []time.Duration{0, 0, 59, 0, 60, 0, 0}
		_, err := async.Start(ctx, func(ctx context.Context) error {
			if runs++; runs > len(lasts) {
				return nil
			}
			_ = async.Sleep(ctx, lasts[runs-1]*time.Second)
			return errRun
		}, async.Restart(async.RestartPolicy{Interval: func(n int) time.Duration { asked = append(asked, n); return time.Second }})).Join(ctx)
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 4, 1, 2, 3}, asked)
	})
}

// TestAHealthyRunIsOneWhoseHandlerLasted: that what it left behind takes long
// does not make a run healthy that failed at once.
func TestAHealthyRunIsOneWhoseHandlerLasted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		runs := 0
		_, err := async.Start(ctx, func(ctx context.Context) error {
			runs++
			async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
			return errRun
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3, Within: time.Hour, Healthy: 3 * time.Second})).Join(ctx)
		require.ErrorIs(t, err, errRun)
		require.Equal(t, 3, runs)
	})
}
