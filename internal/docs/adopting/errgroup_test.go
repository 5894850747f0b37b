package adopting

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/docs/adopting/byhand"
)

type copier func(
	context.Context, func(context.Context, chan<- string) error, func(context.Context) error,
	func(context.Context, <-chan string) error,
) error

func TestCopyPassesEveryLine(t *testing.T) {
	for _, run := range []copier{Copy, byhand.Copy} {
		var written atomic.Int32
		err := run(asynctest.Context(t), func(ctx context.Context, lines chan<- string) error {
			for i := range 100 {
				select {
				case lines <- fmt.Sprint(i):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		}, func(context.Context) error { return nil }, func(_ context.Context, lines <-chan string) error {
			for range lines {
				written.Add(1)
			}
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 100, written.Load())
	}
}

func TestCopyThatCannotBePreparedLeavesNobody(t *testing.T) {
	left := func(run copier) (reading bool) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(asynctest.Context(t))
			defer cancel()
			var over atomic.Bool
			err := run(ctx, func(ctx context.Context, _ chan<- string) error {
				<-ctx.Done()
				over.Store(true)
				return nil
			}, func(context.Context) error { return errTest }, nil)
			require.ErrorIs(t, err, errTest)
			reading = !over.Load()
		})
		return reading
	}
	require.False(t, left(Copy))
	require.True(t, left(byhand.Copy), "the fault that the page lists")
}
