package async_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestManyPanicsThatNobodyIsGivenAreNotAllPrinted: each print looks at the stacks
// of the whole process. What is not printed is raised all the same.
func TestManyPanicsThatNobodyIsGivenAreNotAllPrinted(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, check := asynctest.Root(t.Context())
		require.ErrorIs(t, panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				for range 300 {
					<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
				}
				time.Sleep(time.Minute)
				return nil
			})
		}), errPlanted)
		printed := strings.Count(check().Error(), "this panic has waited")
		require.Equal(t, 32, printed)
	})
}
