package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
)

// TestARenewalOfExecHasASixthOfTheLease counts from the last moment at which a renewal is
// sent when all is well, to the TERM that a command gets for its lack of one. A sixth is as
// long as a renewal is waited for.
func TestARenewalOfExecHasASixthOfTheLease(t *testing.T) {
	for _, lease := range []time.Duration{
		500 * time.Millisecond, 700 * time.Millisecond, 999 * time.Millisecond, time.Second, 3 * time.Second, 15 * time.Second, time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			m, err := locks.New(memstore.New(), locks.Lease(lease))
			require.NoError(t, err)
			h, err := m.Acquire(t.Context(), "k", locks.NoRenew())
			require.NoError(t, err)
			grace, last := pauses(lease)
			require.Greater(t, h.Remaining()-lease*11/30-grace-last, lease/6, lease)
			require.Positive(t, last)
			require.NoError(t, h.Release(t.Context()))
		})
	}
}
