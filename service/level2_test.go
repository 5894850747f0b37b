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

// A Run whose Drain has returned long ago is told at level 2 what has cut it short, and nothing else: that somebody looks who
// is left tells nobody to go.
func TestAServiceWhoseDrainHasReturnedIsToldOfTheCut(t *testing.T) {
	for name, options := range map[string][]async.TaskOption{"plain": nil, "with Restart": restarts(0), "a daemon": {async.Daemon()}} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					var told error
					time.AfterFunc(time.Second, func() { stop(errStop) })
					err := service.Run(ctx, []service.Service{{
						Name: "worker", Drain: func(context.Context) error { return nil }, Options: options,
						Run: func(ctx context.Context) error { <-ctx.Done(); told = context.Cause(ctx); return told },
					}}, service.Grace(10*time.Second))
					require.EqualError(t, err, "service: the drain was cut short: async: services: context deadline exceeded (limit 10s, waited 10s); "+
						"it was for: told to stop; still draining: service worker for 10s (Run)")
					require.NotErrorIs(t, told, async.ErrDismissed)
					assert.ErrorAs(t, told, new(*async.TimeoutError))
				})
			}
		})
	}
}
