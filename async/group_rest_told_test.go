package async_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

// What goes wrong in a group in which nothing runs is told, though nobody holds the
// group any more.
func TestWhatGoesWrongInAGroupAtRestIsTold(t *testing.T) {
	for name, goesWrong := range map[string]func(ctx context.Context){
		"a value that comes too late for its promise": func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { panic(errPlanted) }))
			p.Resolve(1)
			p.Resolve(2)
		},
		"a value that nobody wants any more": func(ctx context.Context) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { panic(errPlanted) }))
			p.Resolve(1)
			f.Cancel(nil)
		},
		"a promise that is rejected": func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx)
			p.Reject(errPlanted)
		},
		"another package has it fail": func(ctx context.Context) {
			bridge.Fail(bridge.ScopeOf(ctx), errPlanted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			forget := func(ctx context.Context) {
				goesWrong(async.Open(ctx).Context())
			}
			collect := func() {
				for range 3 {
					runtime.GC()
					time.Sleep(10 * time.Millisecond) // the collector runs cleanups on a goroutine of its own
				}
			}
			t.Run("in a scope", func(t *testing.T) {
				require.ErrorIs(t, async.Scope(t.Context(), func(ctx context.Context) error {
					forget(ctx)
					collect()
					return nil
				}), errPlanted)
			})
			t.Run("at a root", func(t *testing.T) {
				ctx, check := asynctest.Root(t.Context())
				forget(ctx)
				require.Eventually(t, func() bool { collect(); return check() != nil }, time.Minute, time.Millisecond)
				require.ErrorIs(t, check(), errPlanted)
			})
		})
	}
}
