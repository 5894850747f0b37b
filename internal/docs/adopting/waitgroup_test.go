package adopting

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
