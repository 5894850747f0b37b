package service_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// The Run inside has begun to drain late, or has more time: level 2 of the Run around
// it is that of its services all the same.
func TestLevel2OfARunIsThatOfTheRunsInItsServices(t *testing.T) {
	untilCut := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	nested := func(next func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return service.Run(ctx, []service.Service{{Name: "inner", Run: next, Drain: untilCut}}, service.Grace(time.Hour))
		}
	}
	for name, run := range map[string]func(context.Context) error{
		"one in another":   nested(untilCut),
		"three":            nested(nested(untilCut)),
		"in a scope":       func(ctx context.Context) error { return async.Scope(ctx, nested(untilCut)) },
		"under a deadline": func(ctx context.Context) error { return withDeadline(ctx, nested(untilCut)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(context.Background())
				cause := errors.New("stop")
				time.AfterFunc(time.Second, func() { cancel(cause) })
				begun := time.Now()
				err := service.Run(ctx, []service.Service{{Name: "outer", Run: run}}, service.Grace(time.Second))
				assert.Equal(t, 2*time.Second, time.Since(begun), "nobody is given up on")
				var late *async.TimeoutError
				require.ErrorAs(t, err, &late)
				assert.Regexp(t, `^service: the drain was cut short: async: services: context deadline exceeded \(limit 1s, waited 1s\); it was for: stop; `+
					`still draining: service outer for 1s \(Run, .*services, service inner.*\)$`, err.Error(), "once")
			})
		})
	}
}

func withDeadline(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	return f(ctx)
}

// A Run that was shielded from the end of the Run around it goes on.
func TestARunThatIsShieldedFromTheOneAroundItIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		begun, whole := time.Now(), false
		err := service.Run(ctx, []service.Service{{Name: "outer", Run: func(ctx context.Context) error {
			return service.Run(context.WithoutCancel(ctx), []service.Service{{Name: "inner", Run: func(ctx context.Context) error {
				whole = async.Sleep(ctx, 4*time.Second) == nil
				return nil
			}}, {Name: "job", MayEnd: true, Run: func(ctx context.Context) error {
				return async.Sleep(ctx, 3*time.Second) // the Run inside looks around
			}}})
		}}}, service.Grace(time.Second), service.GiveUp(time.Hour))
		assert.True(t, whole)
		assert.Equal(t, 4*time.Second, time.Since(begun))
		assert.ErrorContains(t, err, "cut short", "the one around has had no more time")
	})
}
