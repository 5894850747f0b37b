package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A decade is longer than anybody waits.
const decade = 10 * 365 * 24 * time.Hour

func TestADrainWithoutALimitTakesAsLongAsItTakes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		slow := worker("slow", func(ctx context.Context) error { return async.Sleep(ctx, decade) })
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{slow}, service.Grace(service.Forever)))
		assert.Equal(t, decade+time.Second, time.Since(begun))
	})
}

func TestARunThatNeverGivesUpWaitsForWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		deaf := func(context.Context) error { time.Sleep(decade); return nil }
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{{Name: "deaf", Run: deaf}}, service.Grace(0), service.GiveUp(service.Forever))
		require.ErrorAs(t, err, new(*async.TimeoutError), "the drain was cut short")
		require.NotErrorAs(t, err, new(*async.StragglerError), "and nobody is left")
		assert.Equal(t, decade, time.Since(begun))
	})
}
