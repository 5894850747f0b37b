package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A claim is answered by one process, which then ends, and another has the file: what that
// knows of hints is not what the claim has seen.
func TestWhatAnotherProcessHasHintedIsNotTakenForSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := memstore.New(), memstore.New()
		got, err := before.Claim(t.Context(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
		require.NoError(t, err)
		begin := time.Now()
		require.NoError(t, after.Wait(t.Context(), "q", got.Seen, begin.Add(time.Second)))
		assert.Equal(t, begin, time.Now())
	})
}
