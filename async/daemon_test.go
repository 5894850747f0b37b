package async_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestADaemonStartedLateIsCancelledToo: by a daemon that has been told to go,
// and by an exit hook.
func TestADaemonStartedLateIsCancelledToo(t *testing.T) {
	serve := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, start := range map[string]func(ctx context.Context){
		"in its place": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(ctx, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by itself": func(ctx context.Context) {
			async.Go(ctx, func(own context.Context) error {
				<-own.Done()
				async.Go(own, serve, async.Daemon())
				return nil
			}, async.Daemon())
		},
		"by an exit hook": func(ctx context.Context) {
			async.Go(ctx, serve, async.Daemon())
			async.OnExit(ctx, func(context.Context, error) error {
				async.Go(ctx, serve, async.Daemon())
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				begin := time.Now()
				outer, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
					start(ctx)
					return nil
				}))
				tookAbout(t, 0, begin)
			})
		})
	}
}

// TestDaemonsAreDismissedWhileOthersAreStarted is for the race detector.
func TestDaemonsAreDismissedWhileOthersAreStarted(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range fewer(6000, 1200) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				for range i % 100 {
					runtime.Gosched()
				}
				for range 3 {
					async.Go(ctx, nothing, async.Daemon())
				}
				return nil
			}, async.Daemon())
			for range i % 37 {
				runtime.Gosched()
			}
			return nil
		}, async.Limit(100)))
	}
}

// A standard context cancels those below it one after another: the scope may hear of it,
// and be about to end, before its daemon does.
func TestADaemonOfACancelledScopeHearsOfThatCause(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 300 { // they make the walk long
			_, stop := context.WithCancel(ctx)
			defer stop()
		}
		var cause error
		var ready sync.WaitGroup
		ready.Add(2)
		go func() { ready.Wait(); cancel(errPlanted) }()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				done := ctx.Done()
				ready.Done()
				<-done
				cause = context.Cause(ctx)
				return nil
			}, async.Daemon())
			done := ctx.Done()
			ready.Done()
			<-done
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, errPlanted, cause)
	}
}
