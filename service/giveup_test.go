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
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// Hooks have 5 s, and GiveUp is longer, so what Run returns is the same each time: a hook
// that keeps to its time is no straggler, and one that does not is.
func TestAHookThatKeepsToItsTimeIsNoStraggler(t *testing.T) {
	keeps := func(ctx context.Context) { <-ctx.Done() }
	ignores := func(context.Context) { time.Sleep(time.Hour) }
	for name, tc := range map[string]struct {
		hook func(ctx context.Context)
		left bool
	}{
		"it keeps to it":  {keeps, false},
		"it ignores that": {ignores, true},
	} {
		for kind, stuck := range map[string]service.Service{
			"an exit hook": {Name: "stuck", Run: func(ctx context.Context) error {
				async.OnExit(ctx, func(ctx context.Context, _ error) error { tc.hook(ctx); return nil })
				return await(ctx)
			}},
			"an abort hook": {Name: "stuck", Run: await, Options: []async.TaskOption{
				async.OnAbort(func(ctx context.Context, _ error) error { tc.hook(ctx); return nil }),
			}},
			"a hook of a task": {Name: "stuck", Run: func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(ctx context.Context, _ error) error { tc.hook(ctx); return nil })
					return await(ctx)
				})
				return await(ctx)
			}},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				for range 20 {
					synctest.Test(t, func(t *testing.T) {
						root, _ := asynctest.Root(t.Context()) // which is told of what comes after Run
						ctx, stop := context.WithCancelCause(root)
						begun := time.Now()
						time.AfterFunc(time.Second, func() { stop(errStop) })
						err := service.Run(ctx, []service.Service{stuck}, service.Grace(0))
						require.ErrorIs(t, err, errStop)
						assert.Equal(t, tc.left, errors.As(err, new(*async.StragglerError)), "%v", err)
						if tc.left {
							assert.Greater(t, time.Since(begun), 6*time.Second, "after the time of the hook")
							time.Sleep(time.Hour)
						}
					})
				}
			})
		}
	}
}
