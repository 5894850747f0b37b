package async_test

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
			err := async.Scope(ctx, func(ctx context.Context) error {
				_, err := async.Poll(ctx, tc.interval, func(context.Context) (int, bool, error) {
					probes++
					time.Sleep(2 * time.Millisecond)
					return 0, false, tc.probe()
				}, tc.opts...).Await(ctx, patience)
				return err
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
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
