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

func TestTheFirstActorThatReturnsStopsTheOthers(t *testing.T) {
	for _, want := range []error{nil, errTest} {
		synctest.Test(t, func(t *testing.T) {
			ended, start := false, time.Now()
			err := First(asynctest.Context(t),
				func(ctx context.Context) error {
					err := async.Sleep(ctx, time.Hour)
					time.Sleep(time.Second)
					ended = true
					return err
				},
				func(context.Context) error {
					time.Sleep(time.Minute)
					return want
				})
			require.Equal(t, want, err)
			require.True(t, ended)
			require.Equal(t, time.Minute+time.Second, time.Since(start))
		})
	}
}
