package locks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

// TestManyLocksAreNotGivenBackOneByOneToAStoreThatIsSilent has leases of a day, which would
// not bound it.
func TestManyLocksAreNotGivenBackOneByOneToAStoreThatIsSilent(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var keys []string
		for i := range 50 {
			keys = append(keys, fmt.Sprintf("k%02d", i))
		}
		fail(w, lockstest.Release, lockstest.Fault{Silent: true})
		begin := time.Now()
		err := w.m.WithAll(t.Context(), keys, nothing, locks.LeaseFor(24*time.Hour))
		assert.Equal(t, 10*time.Second, time.Since(begin))
		var failed *locks.ReleaseError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "k49", failed.Key, "the first that was not given back")
		require.ErrorIs(t, err, locks.ErrUnknownOutcome)
		asked := map[string]bool{}
		for _, c := range w.store.Calls(lockstest.Release) {
			asked[c.Name.Key] = true
		}
		assert.Len(t, asked, len(keys), "each was tried")
	})
}

// several is a store that cannot be compared with another.
type several struct {
	locks.Store
	_ []int
}

func TestAStoreThatCannotBeComparedIsRefused(t *testing.T) {
	_, err := locks.New(several{Store: memstore.New()})
	require.ErrorIs(t, err, locks.ErrValidation)
	_, err = locks.New(&several{Store: memstore.New()})
	require.NoError(t, err)
}
