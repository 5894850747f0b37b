package async_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestAWaitThatIsOverKeepsNoFuture, though the scope that has waited goes on.
func TestAWaitThatIsOverKeepsNoFuture(t *testing.T) {
	type value [1 << 20]byte
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[*value]) (*value, error){
		"Wait":  func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Wait(ctx) },
		"Join":  func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Join(ctx) },
		"Await": func(ctx context.Context, f *async.Future[*value]) (*value, error) { return f.Await(ctx, time.Minute) },
		"AwaitAll": func(ctx context.Context, f *async.Future[*value]) (*value, error) {
			all := async.AwaitAll(ctx, 0, f)
			return all[0].Value, all[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					var gone atomic.Bool
					func() {
						f := async.Execute(ctx, func(context.Context) (*value, error) {
							time.Sleep(time.Second) // until the wait has parked
							v := new(value)
							runtime.AddCleanup(v, func(gone *atomic.Bool) { gone.Store(true) }, &gone)
							return v, nil
						})
						_, err := wait(ctx, f)
						require.NoError(t, err)
					}()
					for i := 0; i < 1000 && !gone.Load(); i++ {
						runtime.GC()
						runtime.Gosched()
					}
					require.True(t, gone.Load(), "the future is still there")
					return nil
				}))
			})
		})
	}
}
