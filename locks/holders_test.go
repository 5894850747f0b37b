package locks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestObserveTellsWhoHoldsALockAndEachChange(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for holders, err := range w.m.Observe(ctx, "k") {
				text := fmt.Sprint(err != nil)
				for _, h := range holders {
					text += fmt.Sprint(" ", h.Owner, " ", h.Revoked)
				}
				seen = append(seen, text)
			}
		}()
		step := func(f func()) {
			time.Sleep(2 * time.Second)
			f()
		}
		var h *locks.Hold
		step(func() {
			var err error
			h, err = w.other.Acquire(t.Context(), "k")
			require.NoError(t, err)
		})
		time.Sleep(time.Minute) // it is renewed
		step(func() {
			_, err := w.m.Revoke(t.Context(), "k")
			require.NoError(t, err)
		})
		step(func() { _ = h.Release(t.Context()) })
		step(func() {
			w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
				if c.Step == lockstest.Get {
					f.Fail = assert.AnError
				}
				return f
			})
		})
		time.Sleep(5 * time.Second)
		w.store.Inject(nil)
		time.Sleep(2 * time.Second)
		cancel()
		<-ended
		assert.Equal(t, []string{"false", "false other false", "false other true", "false", "true", "false"}, seen)

		for _, err := range w.m.Observe(t.Context(), "") {
			require.ErrorIs(t, err, locks.ErrValidation)
		}
		for range w.m.Observe(t.Context(), "k") {
			break
		}
	})
}
