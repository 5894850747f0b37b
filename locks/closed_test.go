package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"context"
	"github.com/ambit-go/ambit/locks"
)

func TestAClosedStoreIsNotWaitedFor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "held")
		require.NoError(t, err)
		require.NoError(t, w.store.Close())
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, w.m.With(ctx, "k", nothing), locks.ErrClosed)
		assert.Zero(t, time.Since(begin))
		require.ErrorIs(t, w.m.Lead(ctx, "k", nothing), locks.ErrClosed)
		assert.Zero(t, time.Since(begin))
		require.ErrorIs(t, h.Release(ctx), locks.ErrClosed)
		assert.Zero(t, time.Since(begin))
	})
}
