package locks

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestABodyThatAsksLearnsOfALossThatIsBeingTold: the goroutine that has noted the loss has
// not cancelled the body yet.
func TestABodyThatAsksLearnsOfALossThatIsBeingTold(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context) bool{
		"Err": func(ctx context.Context) bool { return ctx.Err() != nil },
		"Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(&leavingStore{})
			require.NoError(t, err)
			h := acquired(t, m, "k")
			lost := &LostError{Key: "k", Reason: LostExpired}
			err = h.Run(t.Context(), func(ctx context.Context) error {
				assert.False(t, ask(ctx))
				h.mu.Lock()
				h.lost = lost
				h.mu.Unlock()
				assert.True(t, ask(ctx), "it goes on")
				assert.Equal(t, error(lost), context.Cause(ctx))
				return nil
			})
			assert.ErrorIs(t, err, lost)
		})
	}
}
