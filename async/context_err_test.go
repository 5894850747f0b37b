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

// TestDeadlines: a context says DeadlineExceeded only where its Deadline said
// when.
func TestDeadlineExceededOnlyWhereDeadlineSaidSo(t *testing.T) {
	for name, test := range map[string]struct {
		run      func(ctx context.Context, look func(context.Context))
		deadline time.Duration // of the context looked at; 0: none
		err      error
	}{
		"the scope's timeout": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { look(ctx); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"a leaf below it": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the task's timeout": {func(ctx context.Context, look func(context.Context)) {
			contextGo(ctx, look, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the earlier of both, the task's": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look, async.Timeout(time.Second)); return nil }, async.Timeout(time.Minute))
		}, time.Second, context.DeadlineExceeded},
		"the earlier of both, the scope's": {func(ctx context.Context, look func(context.Context)) {
			_ = async.Scope(ctx, func(ctx context.Context) error { contextGo(ctx, look, async.Timeout(time.Minute)); return nil }, async.Timeout(time.Second))
		}, time.Second, context.DeadlineExceeded},
		"the derived context's": {func(ctx context.Context, look func(context.Context)) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(time.Hour, cancel)
			contextGo(ctx, look)
		}, time.Second, context.DeadlineExceeded},
		"an Await's limit": {func(ctx context.Context, look func(context.Context)) {
			_, _ = async.Start(ctx, contextTask(look)).Await(ctx, time.Second)
		}, 0, context.Canceled},
		"an Await's context's": {func(ctx context.Context, look func(context.Context)) {
			f := async.Start(ctx, contextTask(look))
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = f.Await(ctx, 0)
		}, 0, context.Canceled},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", looked at late"}[late], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					looked := make(chan struct{}, 1)
					_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
						test.run(ctx, func(ctx context.Context) {
							if late {
								time.Sleep(2 * time.Second)
							}
							deadline, ok := ctx.Deadline()
							require.Equal(t, test.deadline != 0, ok)
							if ok {
								require.Equal(t, start.Add(test.deadline), deadline)
							}
							<-ctx.Done()
							if !late {
								tookAbout(t, time.Second, start)
							}
							require.Equal(t, test.err, ctx.Err())
							require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
							looked <- struct{}{}
						})
						return nil
					})
					require.Len(t, looked, 1)
				})
			})
		}
	}
}

func TestErrIsThatOfTheContextATaskWasStartedWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for _, use := range []func(ctx context.Context){
				func(ctx context.Context) { _ = ctx.Done() },
				func(ctx context.Context) { async.OnExit(ctx, contextHook) },
			} {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				async.Go(derived, func(ctx context.Context) error {
					defer cancel()
					use(ctx)
					time.Sleep(2 * time.Second)
					require.Equal(t, derived.Err(), ctx.Err())
					return nil
				})
			}
			return nil
		}, async.Timeout(time.Second))
	})
}
