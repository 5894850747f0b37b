package locks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// rob has another process take a lock from its holder, and hold it for a moment.
func (w *world) rob(key string) {
	_, err := w.other.Revoke(w.Context(), key, locks.Force)
	require.NoError(w, err)
	w.mustFree(key)
}

// mustBeStolen expects that err is the loss of a lock that was taken from its holder.
func (w *world) mustBeStolen(err error, key string) {
	var lost *locks.LostError
	require.ErrorAs(w, err, &lost)
	assert.Equal(w, key, lost.Key)
	assert.Equal(w, locks.LostStolen, lost.Reason)
	assert.NotErrorIs(w, err, locks.ErrNotReleased, "not all was done under the lock")
	assert.Len(w, w.events.of(locks.EventLost), 1)
	assert.Len(w, w.events.of(locks.EventEnded), len(w.events.of(locks.EventGranted)))
}

func TestALockThatWasTakenFromABodyBeforeItsNextRenewalIsLost(t *testing.T) {
	for name, call := range map[string]func(w *world, body func(context.Context) error) error{
		"With": func(w *world, body func(context.Context) error) error { return w.m.With(w.Context(), "k", body) },
		"WithAll": func(w *world, body func(context.Context) error) error {
			return w.m.WithAll(w.Context(), []string{"j", "k", "l"}, body)
		},
		"Acquire": func(w *world, body func(context.Context) error) error {
			h, err := w.m.Acquire(w.Context(), "k")
			require.NoError(w, err)
			require.NoError(w, h.Run(w.Context(), body))
			err = h.Release(w.Context())
			require.Equal(w, err, h.Release(w.Context()))
			require.Equal(w, err, h.Err())
			return err
		},
	} {
		for said, own := range map[string]error{"nil": nil, "an error": assert.AnError} {
			if own != nil && name == "Acquire" {
				continue
			}
			t.Run(name+" of a body that returns "+said, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					err := call(w, func(context.Context) error {
						w.rob("k")
						return own
					})
					w.mustBeStolen(err, "k")
					if own != nil {
						require.ErrorIs(t, err, own)
					}
				})
			})
		}
	}
}

// TestALeaderWhoseLockWasTakenLeadsAgain: the store says it only when the lock is given back.
func TestALeaderWhoseLockWasTakenLeadsAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		terms := 0
		require.NoError(t, w.m.Lead(t.Context(), "k", func(context.Context) error {
			if terms++; terms == 1 {
				w.rob("k")
			}
			return nil
		}))
		assert.Equal(t, 2, terms)
	})
}
