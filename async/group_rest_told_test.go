package async_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// An error in a group in which nothing runs is told, though nobody holds the group.
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
		"a callback has it fail": func(ctx context.Context) {
			async.Fail(ctx, errPlanted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("in a scope", func(t *testing.T) {
				require.ErrorIs(t, async.Scope(t.Context(), func(ctx context.Context) error {
					goesWrong(async.NewGroup(ctx).Context())
					return nil
				}), errPlanted)
			})
			t.Run("at a root", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, check := asynctest.Root(t.Context())
					goesWrong(async.NewGroup(ctx).Context())
					time.Sleep(time.Minute)
					synctest.Wait()
					require.ErrorIs(t, check(), errPlanted)
				})
			})
		})
	}
}
