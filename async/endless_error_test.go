package async_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// endlessError wraps itself: what looks for its end finds none.
type endlessError struct{}

func (endlessError) Error() string   { return "endless" }
func (e endlessError) Unwrap() error { return e }

func TestAnErrorThatWrapsItselfHangsNothing(t *testing.T) {
	fails := func(context.Context) error { return endlessError{} }
	stopped := func(ctx context.Context) error { <-ctx.Done(); return endlessError{} }
	for name, task := range map[string]func(ctx context.Context){
		"of a task":           func(ctx context.Context) { async.Go(ctx, fails) },
		"of one that stopped": func(ctx context.Context) { async.Go(ctx, stopped, async.Timeout(time.Second)) },
		"joined": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { return errors.Join(stopped(ctx), endlessError{}) }, async.Timeout(time.Second))
		},
		"of a future": func(ctx context.Context) { _, _ = async.Start(ctx, stopped).Await(ctx, time.Second) },
		"of a probe": func(ctx context.Context) {
			_, _ = async.Repeat(ctx, async.Every(time.Second), fails).Await(ctx, 0)
		},
		"of a task that is started again": func(ctx context.Context) {
			async.Go(ctx, fails, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"panicked": func(ctx context.Context) {
			_, err := async.Start(ctx, func(context.Context) error { panic(endlessError{}) }).Await(ctx, 0)
			_ = err.Error()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					task(ctx)
					return nil
				})
				if err != nil {
					require.NotEmpty(t, err.Error())
				}
			})
		})
	}
}
