package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks/internal/pause"
)

func TestAPauseEndsInItsTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		require.NoError(t, pause.For(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(begin))
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		require.Equal(t, why, pause.For(ctx, time.Hour))
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
	})
}

func TestAPauseBeforeATryHardlyGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, try := range []int{1, 3, 1_000_000} {
			longest := time.Duration(0)
			for range 1000 {
				begin := time.Now()
				pause.Before(t.Context(), try, time.Millisecond)
				longest = max(longest, time.Since(begin))
			}
			most := time.Duration(min(try, 10)) * time.Millisecond
			require.Less(t, longest, most)
			require.Greater(t, longest, most/2)
		}
	})
}

// TestAPauseKeepsTheSlotOfALimit: the other task begins when this one has ended.
func TestAPauseKeepsTheSlotOfALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := pause.For(ctx, time.Minute)
				order = append(order, "first")
				return err
			})
			synctest.Wait()
			async.Go(ctx, func(context.Context) error {
				order = append(order, "second")
				return nil
			})
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"first", "second"}, order)
	})
}
