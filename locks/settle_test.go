package locks_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/memstore"
)

// TestCloseWaitsForWhatTheTimerDoes: goroutines of it would be left when a program that has
// closed all looks for leaks.
func TestCloseWaitsForWhatTheTimerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		m, err := locks.New(memstore.New(), locks.Observe(func(e locks.Event) {
			if e.Kind == locks.EventLost {
				<-goOn
			}
		}))
		require.NoError(t, err)
		_, err = m.Acquire(t.Context(), "k", locks.NoRenew())
		require.NoError(t, err)
		require.NoError(t, m.Close(), "it does not wait for what is held")
		time.Sleep(time.Hour) // the timer has found the loss
		closed := make(chan error, 1)
		go func() { closed <- m.Close() }()
		synctest.Wait()
		require.Empty(t, closed)
		close(goOn)
		require.NoError(t, <-closed)
	})
}

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
