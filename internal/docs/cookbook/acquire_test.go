package cookbook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAJobThatWasAcquiredIsRunAlsoIfTheAgentStops(t *testing.T) {
	errJob := errors.New("exit status 1")
	stop := make(chan struct{})
	err := Acquire(asynctest.Context(t), stop,
		func(context.Context) (string, error) { close(stop); return "job", nil }, // just as it is told
		func(ctx context.Context, job string) error {
			require.NoError(t, ctx.Err())
			require.Equal(t, "job", job)
			return errJob
		})
	require.ErrorIs(t, err, errJob)
}

func TestAnAgentThatStopsAcquiresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(stop) })
		err := Acquire(asynctest.Context(t), stop,
			func(ctx context.Context) (string, error) { return "", async.Sleep(ctx, time.Hour) },
			func(context.Context, string) error { panic("not run") })
		require.ErrorIs(t, err, ErrStopping)
	})
}

func TestNothingWaitsForTheAgentToStopOnceAJobIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble would not end
		err := Acquire(asynctest.Context(t), make(chan struct{}),
			func(ctx context.Context) (string, error) { return "job", async.Sleep(ctx, time.Second) },
			func(context.Context, string) error { return nil })
		require.NoError(t, err)
	})
}
