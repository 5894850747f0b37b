package async_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ambit-go/ambit/async"
)

// Fail reports false once the scope has ended, however it ended and whatever the error.
func TestFailOnAnEndedScopeIsFalse(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		for name, end := range map[string]error{"well": nil, "failed": errFirst} {
			for _, with := range []error{errSecond, errFirst, context.Canceled} {
				var inner context.Context
				_ = async.Scope(ctx, func(ctx context.Context) error { inner = ctx; return end })
				if async.Fail(inner, with) {
					t.Errorf("scope ended %s: Fail with %v says true", name, with)
				}
			}
		}
	})
}

// Fail is as a Go task of the scope would fail it.
func TestFailIsAsAGoTask(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context, err error){
		"Go":   func(ctx context.Context, err error) { async.Go(ctx, func(context.Context) error { return err }) },
		"Fail": func(ctx context.Context, err error) { async.Fail(ctx, err) },
	} {
		t.Run("in a dismissed daemon/"+name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				if err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						f(ctx, errors.New("http: Server closed"))
						return nil
					}, async.Daemon())
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		})
		t.Run("with a text/"+name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				ctx, cancel := context.WithCancel(ctx)
				err := async.Scope(ctx, func(ctx context.Context) error {
					cancel()
					f(ctx, fmt.Errorf("%s: %w", rows, ctx.Err()))
					return nil
				})
				e, _ := err.(*async.ScopeError)
				if e == nil || len(e.Stopped) != 1 {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
