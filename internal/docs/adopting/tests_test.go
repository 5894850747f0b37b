package adopting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestThePollerBesideATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)                     // inside of the bubble, with its t
		async.Go(ctx, func(ctx context.Context) error { // ctx is a scope
			<-ctx.Done()
			return nil // the test has ended
		})
		polls := 0
		p := NewPoller(ctx, time.Second, func(context.Context) error { polls++; return nil })
		time.Sleep(3500 * time.Millisecond) // of the bubble: it takes no time
		require.NoError(t, p.Stop(ctx))
		require.Equal(t, 3, polls)
	})
}
