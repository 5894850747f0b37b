package locks_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

func TestWhatWasToldOfManySemaphoresIsForgotten(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		use := func(i int) {
			key := fmt.Sprint("k", i)
			require.NoError(t, w.other.WithPermit(t.Context(), key, 2, nothing))
			require.NoError(t, w.m.WithPermit(t.Context(), key, 3, nothing))
		}
		told := func() int { return len(w.events.of(locks.EventSmaller)) }
		for i := range 1000 {
			use(i)
			use(i)
		}
		require.Equal(t, 1000, told(), "once of each")
		use(1000)
		use(0)
		require.Equal(t, 1002, told(), "of the first again")
	})
}
