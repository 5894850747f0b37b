package async_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// The error of a poll may be kept for long; its probe, and all that it has captured, is not kept with it.
func TestTheErrorOfAPollKeepsNoProbe(t *testing.T) {
	gone := make(chan struct{})
	poll := func() error {
		captured := new([1 << 20]byte)
		runtime.AddCleanup(captured, func(struct{}) { close(gone) }, struct{}{})
		_, err := async.Poll(t.Context(), async.Every(time.Millisecond), func(context.Context) (int, bool, error) {
			captured[0]++
			return 0, false, errPlanted
		}).Join(t.Context())
		return err
	}
	err := poll()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, err, errPlanted)
}
