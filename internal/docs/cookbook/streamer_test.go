package cookbook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAStreamerThatIsStoppedHasTriedEveryChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		var uploaded atomic.Int64
		s := NewStreamer(ctx, func(_ context.Context, chunk string) error {
			time.Sleep(time.Second) // async.Sleep would lend its slot
			uploaded.Add(1)
			if chunk == "bad" {
				return errors.New("no")
			}
			return nil
		})
		for range 9 {
			require.NoError(t, s.Write("line"))
		}
		require.NoError(t, s.Write("bad"))
		start := time.Now()
		var stops sync.WaitGroup
		for range 3 { // every one of them returns when all is over
			stops.Go(func() {
				require.NoError(t, s.Stop(ctx))
				require.EqualValues(t, 10, uploaded.Load())
				require.Equal(t, 3*time.Second, time.Since(start), "four at a time")
			})
		}
		stops.Wait()
		require.EqualValues(t, 1, s.Holes())
		require.ErrorIs(t, s.Write("late"), async.ErrScopeEnded)
	})
}

func TestAStreamerIsStoppedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStreamer(asynctest.Context(t), func(ctx context.Context, _ string) error { return async.Sleep(ctx, time.Hour) })
		for range 9 {
			require.NoError(t, s.Write("line"))
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errUser)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, s.Stop(ctx), errUser)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestAStreamerMayBeStoppedBeforeAnything(t *testing.T) {
	ctx := asynctest.Context(t)
	s := NewStreamer(ctx, nil)
	require.NoError(t, s.Stop(ctx))
	require.NoError(t, s.Stop(ctx))
}
