package adopting

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/docs/adopting/byhand"
)

var hosts = []string{"a", "bb", "ccc", "dddd"}

func TestAllHostsArePingedAlsoIfOneFails(t *testing.T) {
	for _, pingAll := range []func(context.Context, []string, func(context.Context, string) error) error{PingAll, byhand.PingAll} {
		var pinged atomic.Int32
		err := pingAll(asynctest.Context(t), hosts, func(_ context.Context, host string) error {
			pinged.Add(1)
			if host == "bb" {
				return errTest
			}
			return nil
		})
		require.ErrorIs(t, err, errTest)
		require.EqualValues(t, len(hosts), pinged.Load())
	}
}

func TestTheFirstHostThatFailsStopsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := PingOrStop(asynctest.Context(t), hosts, func(ctx context.Context, host string) error {
			if host == "bb" {
				return errTest
			}
			return async.Sleep(ctx, time.Hour)
		})
		require.ErrorIs(t, err, errTest)
	})
}

func TestForEachOverIndices(t *testing.T) {
	lengths, err := Lengths(asynctest.Context(t), hosts, func(_ context.Context, host string) (int, error) { return len(host), nil })
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4}, lengths)
}

// "When ForEach is wrong" says which of four removals run although ctx is done.
func TestWhatRunsAlthoughCtxIsDone(t *testing.T) {
	done, cancel := context.WithCancel(asynctest.Context(t))
	cancel()
	var removed atomic.Int32
	remove := func(context.Context, string) error { removed.Add(1); return nil }
	removals := func(ctx context.Context) error {
		started := make(chan struct{}) // no slot is free again before all were started
		defer close(started)
		for _, host := range hosts {
			async.Go(ctx, func(ctx context.Context) error { <-started; return remove(ctx, host) })
		}
		return nil
	}
	for name, c := range map[string]struct {
		run  func() error
		runs int32
	}{
		"ForEach":                            {func() error { return async.ForEach(done, slices.Values(hosts), remove) }, 0},
		"Go":                                 {func() error { return async.Scope(done, removals) }, 4},
		"Go under a Limit, those that queue": {func() error { return async.Scope(done, removals, async.Limit(1)) }, 1},
		"ForEach that nobody can stop": {func() error {
			return async.ForEach(context.WithoutCancel(done), slices.Values(hosts), remove, async.Limit(2), async.ItemTimeout(time.Minute))
		}, 4},
	} {
		removed.Store(0)
		_ = c.run()
		assert.Equal(t, c.runs, removed.Load(), name)
	}
}
