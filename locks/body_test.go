package locks

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The goroutine that gives the lock back has noted it, and has not cancelled the body yet.
func TestABodyThatAsksLearnsThatItsLockIsBeingGivenBack(t *testing.T) {
	m, err := New(&leavingStore{})
	require.NoError(t, err)
	h := acquired(t, m, "k")
	err = h.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		h.mu.Lock()
		h.ended = true
		h.mu.Unlock()
		assert.ErrorIs(t, ctx.Err(), context.Canceled)
		assert.ErrorIs(t, context.Cause(ctx), ErrReleased)
		return nil
	})
	assert.ErrorIs(t, err, ErrReleased)
}
