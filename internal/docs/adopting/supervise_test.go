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

func TestAWorkerThatFailsNowAndThenGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, beside atomic.Int32
		err := Supervise(asynctest.Context(t), func(ctx context.Context) error {
			beside.Add(1)
			return async.Sleep(ctx, time.Hour)
		}, func(context.Context) error {
			switch runs.Add(1) {
			case 1:
				return errTest
			case 2:
				panic("planted")
			default:
				return nil
			}
		})
		require.NoError(t, err)
		require.EqualValues(t, 3, runs.Load())
		require.EqualValues(t, 1, beside.Load(), "the other one is left alone")
	})
}

func TestAWorkerThatFailsTooOftenEndsThemAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		err := Supervise(asynctest.Context(t),
			func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) },
			func(context.Context) error { runs.Add(1); return errTest })
		require.ErrorIs(t, err, errTest)
		require.EqualValues(t, 5, runs.Load())
		var restart *async.RestartError
		require.ErrorAs(t, err, &restart)
		require.Equal(t, 5, restart.Failures)
	})
}

func TestAWorkerThatIsNotLetInIsNotCalledAgain(t *testing.T) {
	var runs atomic.Int32
	err := Supervise(asynctest.Context(t), Connected(func(context.Context) error { runs.Add(1); return errDenied }))
	require.ErrorIs(t, err, errDenied)
	require.EqualValues(t, 1, runs.Load())
}

func TestSupervisedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		runs := 0
		byhand.Supervise(ctx, func(context.Context) error { runs++; return nil })
		require.Equal(t, 3, runs, "also when it has ended well")
	})
}
