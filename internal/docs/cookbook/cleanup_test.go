package cookbook

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestCleanupRunsInACancelledJobAndNamesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(asynctest.Context(t))
		cancel()
		var mu sync.Mutex
		var removed []string
		errBusy := errors.New("busy")
		resource := func(name string, d time.Duration, err error) Resource {
			return Resource{name, func(ctx context.Context) error {
				if err := async.Sleep(ctx, d); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				removed = append(removed, name)
				return err
			}}
		}
		start := time.Now()
		err := Cleanup(ctx, time.Minute,
			[]Resource{resource("pod", 2*time.Second, nil), resource("service", time.Second, errBusy), resource("volume", time.Hour, nil)},
			nil,
			[]Resource{resource("network", 30*time.Second, nil)})
		require.ErrorIs(t, err, errBusy)
		require.ErrorContains(t, err, "remove service: busy")
		require.ErrorContains(t, err, "remove volume: ")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"service", "pod", "network"}, removed)
		require.Equal(t, 90*time.Second, time.Since(start), "each phase has its own minute")
	})
}

func TestCleanupThatSucceedsSaysNothing(t *testing.T) {
	ctx := asynctest.Context(t)
	none := Resource{"none", func(context.Context) error { return nil }}
	require.NoError(t, Cleanup(ctx, time.Second, []Resource{none}, []Resource{none, none}))
}
