package async_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestOnFailureAndOnPanicAreAskedWithoutTheSlot of the task that has failed: its
// handler has returned. So they may wait for what queues, at n = 1, too.
func TestOnFailureAndOnPanicAreAskedWithoutTheSlot(t *testing.T) {
	var scope context.Context
	another := func() error {
		_, err := async.Start(scope, nothing).Wait(context.Background())
		return err
	}
	for name, opts := range map[string][]async.TaskOption{
		"once":    nil,
		"Restart": {async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 2})},
		"On":      {async.On(executorFunc(func(task func()) error { go task(); return nil }))},
	} {
		for what, fails := range map[string]func(context.Context) error{
			"error": func(context.Context) error { return errPlanted },
			"panic": func(context.Context) error { panic(errPlanted) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					asked := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						scope = ctx
						async.Go(ctx, fails, opts...)
						return nil
					}, async.Limit(1),
						async.OnFailure(func(error) error { asked++; return another() }),
						async.OnPanic(func(*async.PanicError) error { asked++; return another() })))
					require.Equal(t, 1, asked)
				})
			})
		}
	}
}
