package async_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAScopeThatLastsKeepsNothingOfWhatHasEnded in it: no timer, hook, watch or
// alarm of it.
func TestAScopeThatLastsKeepsNothingOfWhatHasEnded(t *testing.T) {
	const n = 2000
	beats := func(ctx context.Context) error { async.Beat(ctx); return nil }
	hook := async.OnAbort(contextHook)
	for name, use := range map[string]func(ctx context.Context){
		"StopOn": func(ctx context.Context) {
			_ = awaited(ctx, func(ctx context.Context) error { <-closedOrDone(ctx); return nil }, async.StopOn(make(chan struct{}), nil))
		},
		"Heartbeat": func(ctx context.Context) { _ = awaited(ctx, beats, async.Heartbeat(time.Hour)) },
		"Timeout":   func(ctx context.Context) { _ = awaited(ctx, beats, async.Timeout(time.Hour)) },
		"abort hook": func(ctx context.Context) {
			f := async.Start(ctx, waitHook, hook)
			_, _ = f.Await(ctx, -1)
			<-f.Done()
		},
		"promise with an abort hook": func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx, hook, async.Timeout(time.Hour))
			p.Resolve(1)
			_, _ = f.Await(ctx, time.Hour)
		},
		"cancelled promise": func(ctx context.Context) {
			f, _ := async.NewPromise[int](ctx, hook)
			f.Cancel(errPlanted)
			_, _ = f.Await(ctx, 0)
		},
		"Sleep and Await": func(ctx context.Context) {
			_ = async.Sleep(ctx, time.Microsecond)
			_, _ = async.Start(ctx, beats).Await(ctx, time.Hour)
		},
		"inner scope with timers": func(ctx context.Context) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, beats)
				return errPlanted
			}, async.OnStall(time.Hour, func(*async.StragglerError) {}), async.DetachAfter(time.Hour), async.Timeout(time.Hour))
		},
		"awaited panic": func(ctx context.Context) {
			_ = awaited(ctx, func(context.Context) error { panic(errPlanted) })
		},
		"derived ctx": func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_ = awaited(ctx, func(ctx context.Context) error { <-closedOrDone(ctx); return nil })
		},
		"Watch": func(ctx context.Context) {
			_, _ = async.Watch(ctx, giveOne, async.Every(time.Hour), beats).Await(ctx, 0)
		},
		"Poll": func(ctx context.Context) {
			_, _ = async.Poll(ctx, async.Every(time.Hour), func(context.Context) (int, bool, error) { return 1, true, nil }).Await(ctx, 0)
		},
		"late exit hook": func(ctx context.Context) {
			var ended context.Context
			_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
			async.OnExit(ended, func(context.Context, error) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				run := func(n int) {
					for range n {
						use(ctx)
					}
				}
				run(n / 10) // what is made once
				before := heapInUse()
				run(n)
				require.Less(t, heapInUse(), before+40*n)
				return nil
			}))
		})
	}
}

// closedOrDone returns a channel that is closed, but asks ctx for its own first.
func closedOrDone(ctx context.Context) <-chan struct{} {
	_ = ctx.Done()
	closed := make(chan struct{})
	close(closed)
	return closed
}
