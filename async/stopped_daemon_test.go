package async_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ambit-go/ambit/async"
)

// The scope ends well and dismisses a daemon that says more than why: the root is told in one line.
func TestADismissedDaemonsTextIsToldToTheRoot(t *testing.T) {
	for name, say := range map[string]func(ctx context.Context) error{
		"wraps the error of the context": onStop(rows),
		"wraps the cause":                func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("%s: %w", rows, context.Cause(ctx)) },
		"wraps both": func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("%s: %w", rows, errors.Join(ctx.Err(), context.Cause(ctx)))
		},
		"of a task in it": func(ctx context.Context) error { async.Go(ctx, onStop(rows)); return nil },
	} {
		for how, start := range map[string]func(ctx context.Context){
			"Go":    func(ctx context.Context) { async.Go(ctx, say, async.Daemon()) },
			"Start": func(ctx context.Context) { async.Start(ctx, say, async.Daemon()) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
					if err := async.Scope(ctx, func(ctx context.Context) error { start(ctx); return nil }); err != nil {
						t.Error(err)
					}
					if n := r.count(rows); n != 1 {
						t.Errorf("the root was told %d times: %q", n, r.all())
					}
				})
			})
		}
	}
}
