package async_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
)

// A callback fails a scope: at once, though all places under its Limit are taken.
func TestAScopeThatACallbackFailsIsCancelledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			assert.True(t, async.Fail(ctx, boom))
			assert.ErrorIs(t, context.Cause(ctx), boom)
			assert.True(t, async.Fail(ctx, boom), "it only repeats the cause")
			return nil
		}, async.Limit(1))
		assert.Equal(t, boom, err)
	})
}

// How it has ended is not changed by that.
func TestAScopeThatIsFailedAfterItWasCancelledListsTheFailureBesideTheCause(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	err := async.Scope(ctx, func(ctx context.Context) error {
		cancel()
		assert.True(t, async.Fail(ctx, boom))
		assert.NotErrorIs(t, context.Cause(ctx), boom)
		return nil
	})
	var scope *async.ScopeError
	assert.ErrorAs(t, err, &scope)
	assert.Equal(t, context.Canceled, scope.Cause)
	assert.Equal(t, []error{boom}, scope.Errors)
	assert.Equal(t, async.Stopped, async.EndingOf(err))
}

func TestAScopeThatHasEndedIsNotFailed(t *testing.T) {
	boom := errors.New("boom")
	var kept context.Context
	assert.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }))
	assert.False(t, async.Fail(kept, boom))
	assert.NotErrorIs(t, context.Cause(kept), boom)
}
