package async_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A package beside this one fails a scope: at once, though all places under its Limit are taken.
func TestAScopeThatIsFailedByAnotherPackageIsCancelledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			bridge.Fail(bridge.ScopeOf(ctx), boom)
			assert.ErrorIs(t, context.Cause(ctx), boom)
			bridge.Fail(bridge.ScopeOf(ctx), errors.New("it is cancelled already"))
			return nil
		}, async.Limit(1))
		assert.Equal(t, boom, err)
	})
}

func TestAScopeThatWasCancelledOrHasEndedIsNotFailed(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	var scope context.Context
	assert.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		scope = bridge.ScopeOf(ctx)
		cancel()
		bridge.Fail(scope, boom)
		return nil
	}))
	bridge.Fail(scope, boom)
	assert.NotErrorIs(t, context.Cause(scope), boom)
}
