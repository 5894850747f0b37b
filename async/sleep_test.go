package async_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
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

// In a synctest bubble the clock of the package is below zero, outside it is
// above: what is added to it or taken from it may overflow in one of them only.

const forever time.Duration = math.MaxInt64

// TestAProbeThatIsToComeAtTheEndOfTimeDoesNotCome before.
func TestAProbeThatIsToComeAtTheEndOfTimeDoesNotCome(t *testing.T) {
	again := func(d time.Duration) func() error { return func() error { return async.AgainAfter(d, nil) } }
	notYet := func() error { return nil }
	for name, tc := range map[string]struct {
		interval async.Interval
		probe    func() error
		opts     []async.PollOption
	}{
		"interval":                      {async.Every(forever), notYet, nil},
		"interval at a fixed rate":      {async.Every(forever), notYet, []async.PollOption{async.FixedRate()}},
		"a little less, at fixed rate":  {async.Every(forever - 1), notYet, []async.PollOption{async.FixedRate()}},
		"half of it, twice":             {async.Every(forever/2 + 1), notYet, []async.PollOption{async.FixedRate()}},
		"backoff":                       {async.Backoff(forever, forever), notYet, nil},
		"jitter":                        {async.Jitter(0, async.Every(forever)), notYet, nil},
		"again after":                   {async.Every(1), again(forever), nil},
		"again after, at a fixed rate":  {async.Every(time.Millisecond), again(forever), []async.PollOption{async.FixedRate()}},
		"again after nearly for ever":   {async.Every(time.Hour), again(forever - 5), []async.PollOption{async.FixedRate()}},
		"again after, a long rate":      {async.Every(forever - 7), again(forever), []async.PollOption{async.FixedRate()}},
		"again after, and half a rate":  {async.Every(forever/2 + 1), again(forever), []async.PollOption{async.FixedRate()}},
		"again after, from the grid":    {async.Every(3 * time.Nanosecond), again(forever), []async.PollOption{async.FixedRate()}},
		"again after half, at any rate": {async.Every(forever / 3), again(forever / 2), []async.PollOption{async.FixedRate()}},
	} {
		poll := func(t *testing.T, ctx context.Context, patience time.Duration) {
			probes := 0
			for ; probes == 0; patience *= 2 { // else it was over before the first
				err := async.Scope(ctx, func(ctx context.Context) error {
					_, err := async.Poll(ctx, tc.interval, func(context.Context) (int, bool, error) {
						probes++
						time.Sleep(2 * time.Millisecond)
						return 0, false, tc.probe()
					}, tc.opts...).Await(ctx, patience)
					return err
				})
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.Equal(t, 1, probes)
		}
		t.Run(name, func(t *testing.T) {
			t.Run("in a bubble", func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) { poll(t, ctx, 365*24*time.Hour) })
			})
			t.Run("outside", func(t *testing.T) { poll(t, asynctest.Context(t), 10*time.Millisecond) })
		})
	}
}

// TestALimitOfForEverDoesNotPass, and a negative one has.
func TestALimitOfForEverDoesNotPass(t *testing.T) {
	const least = time.Duration(math.MinInt64)
	work := func(ctx context.Context) error { return async.Sleep(ctx, 5*time.Millisecond) }
	for name, tc := range map[string]struct {
		run    func(ctx context.Context) error
		passed bool
	}{
		"Timeout of a scope": {func(ctx context.Context) error { return async.Scope(ctx, work, async.Timeout(forever)) }, false},
		"Timeout of a task": {func(ctx context.Context) error {
			_, err := async.Start(ctx, work, async.Timeout(forever)).Await(ctx, 0)
			return err
		}, false},
		"Shield":    {func(ctx context.Context) error { return async.Shield(ctx, forever, work) }, false},
		"Await":     {func(ctx context.Context) error { _, err := async.Start(ctx, work).Await(ctx, forever); return err }, false},
		"AwaitAll":  {func(ctx context.Context) error { return async.AwaitAll(ctx, forever, async.Start(ctx, work))[0].Err }, false},
		"Heartbeat": {func(ctx context.Context) error { return awaited(ctx, work, async.Heartbeat(forever)) }, false},
		"Grace":     {func(ctx context.Context) error { return graced(ctx, work, forever) }, false},
		"ItemTimeout": {func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1}), func(ctx context.Context, _ int) error { return work(ctx) }, async.ItemTimeout(forever))
		}, false},
		"HookTimeout of exit hooks": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(ctx context.Context, _ error) error { return work(ctx) })
				return nil
			}, async.HookTimeout(forever))
		}, false},
		"Hedge": {func(ctx context.Context) error {
			_, err := async.Hedge(ctx, forever, func(ctx context.Context) (int, error) { return 0, work(ctx) }, func(context.Context) (int, error) { return 0, errPlanted }).Await(ctx, 0)
			return err
		}, false},
		"OnStall and DetachAfter": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, work)
				return nil
			}, async.OnStall(forever, func(*async.StragglerError) { panic("told of a stall") }), async.DetachAfter(forever))
		}, false},

		"negative Timeout of a scope": {func(ctx context.Context) error { return async.Scope(ctx, work, async.Timeout(least)) }, true},
		"negative Timeout of a task":  {func(ctx context.Context) error { return awaited(ctx, work, async.Timeout(least)) }, true},
		"negative Shield":             {func(ctx context.Context) error { return async.Shield(ctx, least, work) }, true},
		"negative Await":              {func(ctx context.Context) error { _, err := async.Start(ctx, work).Await(ctx, least); return err }, true},
		"negative AwaitAll":           {func(ctx context.Context) error { return async.AwaitAll(ctx, least, async.Start(ctx, work))[0].Err }, true},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), tc.run)
				if tc.passed {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.NoError(t, err)
				}
			}
			t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, test) })
			t.Run("outside", test)
		})
	}
}

func awaited(ctx context.Context, f func(ctx context.Context) error, opts ...async.TaskOption) error {
	_, err := async.Start(ctx, f, opts...).Await(ctx, 0)
	return err
}

// graced awaits f, which does not look at its context, with no time and grace.
func graced(ctx context.Context, f func(ctx context.Context) error, grace time.Duration) error {
	_, err := async.Start(ctx, func(ctx context.Context) error { return f(context.WithoutCancel(ctx)) }, async.Grace(grace)).Await(ctx, -1)
	return err
}

// TestDelaysBelowZeroAreNone.
func TestDelaysBelowZeroAreNone(t *testing.T) {
	const least = time.Duration(math.MinInt64)
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var calls atomic.Int32 // Scope may return while OnStall is being told
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
			time.Sleep(time.Millisecond)
			return errPlanted
		}, async.OnStall(least, func(*async.StragglerError) { calls.Add(1) }), async.DetachAfter(least))
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.Equal(t, time.Millisecond, time.Since(begin))
		require.NoError(t, async.Sleep(ctx, least))
		require.LessOrEqual(t, calls.Load(), int32(2), "once when the body has ended, once when cancelled")
	})
}

// TestAFixedRateStaysOnTheGrid whatever the probes take: it is the model of
// the table above.
func TestAFixedRateStaysOnTheGrid(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		work := make([]float64, 20)
		for i := range work {
			work[i] = float64(r.IntN(40)) / 8
		}
		at := ticks(t, async.Every(time.Second), work, async.FixedRate())
		for i := 1; i < len(at); i++ {
			ended := at[i-1] + work[i-1]
			want := math.Max(at[i-1]+1, math.Ceil(ended))
			require.InDelta(t, want, at[i], 1e-9, "seed %d: %v", seed, at)
		}
	}
}

func TestIntervals(t *testing.T) {
	for _, test := range []struct {
		in      async.Interval
		attempt int
		want    time.Duration
	}{
		{async.Backoff(time.Second, time.Hour), 0, time.Second},
		{async.Backoff(time.Second, time.Hour), math.MaxInt, time.Hour},
		{async.Backoff(time.Second, 0), 9, time.Second},
		{async.Backoff(3, math.MaxInt64), math.MaxInt, math.MaxInt64},
		{async.Backoff(math.MinInt64, math.MinInt64), 3, time.Millisecond},
		{async.Jitter(0, async.Every(7)), 1, 7},
		{async.Jitter(0.0, async.Every(math.MaxInt64)), 1, math.MaxInt64},
	} {
		require.Equal(t, test.want, test.in(test.attempt))
	}
	for range 1_000 {
		for _, fraction := range []float64{0.25, 1, 7, math.Inf(1)} {
			d := async.Jitter(fraction, async.Every(time.Second))(1)
			limited := time.Duration(min(fraction, 1) * float64(time.Second))
			require.GreaterOrEqual(t, d, time.Second-limited)
			require.LessOrEqual(t, d, time.Second+limited)
			require.GreaterOrEqual(t, async.Jitter(fraction, async.Every(math.MaxInt64))(1), time.Duration(0))
		}
	}
}
