package asyncz_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
)

// The time line says of each task since when it is there, how long it queued, what it has waited for, and how it has ended.
func TestTheTimeLine(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		rec := record.New()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("holder"))
			async.Start(ctx, func(context.Context) error { return errPlanted }, async.Name("fails"))
			async.Go(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 5*time.Second) }, async.Name("inner"))
				_, err := f.Wait(ctx)
				return err
			}, async.Name("outer"))
			time.Sleep(20 * time.Second)
			page := asyncz.Handler(asyncz.Of(ctx), asyncz.Recorder(rec))
			text := plain(html(t, page))
			require.Regexp(t, `holder #\d+\.\d+ ▸ 20s waits \S+ began 20s ago; sleeps\.`, text)
			require.Regexp(t, `fails #\d+\.\d+ ✗ \S+ error`, text)
			require.Regexp(t, `outer #\d+\.\d+ ✓ 5s ok began 20s ago; awaits #\d+\.\d+ inner for 5s; ended 15s ago: ok`, text)
			require.Contains(t, text, "The last 60s")
			require.Contains(t, text, "−60s −45s −30s −15s now")
			require.Regexp(t, `fails 1 ✗ 1 0`, text)
			require.Regexp(t, `inner 1 0 0 5s 5s`, text)
			require.NotContains(t, plain(html(t, page, "span", "10s")), "✓ 5s ok", "that is longer ago")
			require.Contains(t, plain(html(t, page, "span", "all")), "The last 20s")
			return errPlanted
		}, async.Observe(rec), async.Name("observed"))
	})
}

// The time line has so many rows at the most: what has a problem or lives, what has failed, the longest and the newest.
func TestTheTimeLineIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		rec := record.New()
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("lives"))
			for i := range 1000 {
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Duration(i) * time.Millisecond); return nil }, async.Name(fmt.Sprint("n", i)))
			}
			async.Start(ctx, func(context.Context) error { return errPlanted }, async.Name("fails"))
			time.Sleep(10 * time.Second)
			async.Go(ctx, func(ctx context.Context) error { return nil }, async.Name("newest"))
			synctest.Wait()
			text := plain(html(t, asyncz.Handler(asyncz.Of(ctx), asyncz.Recorder(rec))))
			require.Regexp(t, `40 tasks; 96\d more found no row`, text)
			for _, name := range []string{"lives", "fails", "n999", "newest"} {
				require.Regexp(t, name+` #\d+\.\d+ [▸✗✓]`, text)
			}
			return errPlanted
		}, async.Observe(rec))
	})
}

// A wait that two looks have seen is known to have lasted; another wait of the same task begins anew.
func TestAgesOfWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		target := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("target"))
		async.Go(ctx, func(ctx context.Context) error { _, err := target.Wait(ctx); return err }, async.Name("waits"))
		async.Go(ctx, func(ctx context.Context) error {
			for range 10 {
				_ = async.Sleep(ctx, 7*time.Second)
			}
			return nil
		}, async.Name("again"))
		synctest.Wait()
		page := asyncz.Handler(asyncz.Of(ctx))
		row := func(name string) string {
			synctest.Wait()
			return plain(html(t, page, "name", name))
		}
		require.NotContains(t, row("waits"), "target ≥")
		time.Sleep(5 * time.Second)
		require.Contains(t, row("waits"), "target ≥5s")
		require.Contains(t, row("again"), ", gives up in 2s ≥5s")
		time.Sleep(5 * time.Second)
		require.Contains(t, row("waits"), "target ≥10s")
		require.NotRegexp(t, `gives up in \S+ ≥`, row("again"), "that is another wait")
		time.Sleep(3 * time.Second)
		require.Contains(t, row("again"), "gives up in 1s ≥3s")
	})
}

// A task that a recorder observes has an exact age.
func TestAgesAreExactWithARecorder(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("sleeper"))
			time.Sleep(95 * time.Second)
			require.Regexp(t, `sleeper #\d+\.\d+ go running 95s sleeps`, plain(html(t, asyncz.Handler(asyncz.Of(ctx)))))
			return errPlanted
		}, async.Observe(record.New()))
	})
}
