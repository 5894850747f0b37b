package async_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestAnItemsErrorIsNotLostWhenTheRestIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{0, 1}, func(ctx context.Context, i int) (int, error) {
				if i == 0 {
					return 0, errPlanted
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
			time.Sleep(time.Second)
			return io.ErrNoProgress
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{io.ErrNoProgress, errPlanted}, failuresOf(list))
	})
}
