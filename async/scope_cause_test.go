package async_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestAScopeErrorSaysWhyTheScopeWasCancelled unless that is one of its errors.
func TestAScopeErrorSaysWhyTheScopeWasCancelled(t *testing.T) {
	parent, failed, hook := errors.New("parent"), errors.New("failed"), errors.New("hook")
	waits := func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }
	for name, test := range map[string]struct {
		body  func(ctx context.Context) error
		opts  []async.ScopeOption
		cause error
		errs  []error
	}{
		"the parent, body waits":     {waits, nil, parent, nil},
		"the parent, a task waits":   {func(ctx context.Context) error { async.Go(ctx, waits); return nil }, nil, parent, nil},
		"the parent, a future waits": {func(ctx context.Context) error { async.Start(ctx, waits); return nil }, nil, parent, nil},
		"the parent, and a failure": {func(ctx context.Context) error {
			<-ctx.Done()
			return failed
		}, nil, parent, []error{failed}},
		"the parent, and a failure below": {func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return failed })
				return waits(ctx)
			})
			return waits(ctx)
		}, nil, parent, []error{failed}},
		"the parent, scopes in scopes": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { <-ctx.Done(); return failed })
			})
		}, nil, parent, []error{failed}},
		"the parent, and a hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return hook })
			return waits(ctx)
		}, nil, parent, []error{hook}},
		"its own Timeout": {waits, []async.ScopeOption{async.Timeout(time.Millisecond)}, context.DeadlineExceeded, nil},
		"a failure, and a hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return hook })
			return failed
		}, nil, nil, []error{failed, hook}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(parent) })
				err := async.Scope(ctx, test.body, test.opts...)
				var list *async.ScopeError
				require.ErrorAs(t, err, &list)
				require.Equal(t, test.errs, list.Errors)
				require.Equal(t, test.cause == nil, list.Cause == nil)
				require.ErrorIs(t, list.Cause, test.cause)
				for _, want := range append(test.errs, test.cause) {
					if want != nil {
						require.ErrorIs(t, err, want)
					}
				}
				require.Equal(t, test.cause != nil, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
			})
		})
	}
}

func TestAScopeThatWasStoppedForNothingIsNil(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			cancel()
			async.Go(ctx, func(context.Context) error { return nil })
			return nil
		}), "nothing was kept from being done")
	})
}

// A fussy error cannot be compared.
type fussy struct{ fields any }

func (fussy) Error() string { return "bad fields" }

// TestUsersErrorsDoNoHarm: those that cannot be compared, or whose methods
// panic.
func TestUsersErrorsDoNoHarm(t *testing.T) {
	for name, bad := range map[string]error{
		"a slice in a field": fussy{[]string{"name"}},
		"a map in a field":   fussy{map[string]int{}},
		"a func in a field":  fussy{func() {}},
		"Is panics":          rude{is: true},
		"Unwrap panics":      rude{unwrap: true},
		"joined":             errors.Join(fussy{[]int{1}}, rude{is: true}),
		"wrapped":            fmt.Errorf("wrapped: %w", fussy{[]int{1}}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				echoed := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, echoed)
					async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, echoed); return echoed(ctx) })
					_, _ = async.NewPromise[int](ctx)
					async.Race(ctx, func(ctx context.Context) (int, error) { return 0, echoed(ctx) })
					f := async.Start(ctx, echoed)
					async.Go(ctx, func(ctx context.Context) error {
						_, err := f.Await(context.WithoutCancel(ctx), 0)
						return err
					})
					return bad
				})
				require.IsType(t, bad, err)

				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
				f.Cancel(bad)
				_, err = f.Wait(ctx)
				require.Error(t, err)
				require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
					return errPlanted
				}))
			})
		})
	}
}

// rude is an error whose methods panic.
type rude struct{ is, unwrap bool }

func (rude) Error() string { return "rude" }
func (e rude) Is(error) bool {
	if e.is {
		panic("Is")
	}
	return false
}
func (e rude) Unwrap() error {
	if e.unwrap {
		panic("Unwrap")
	}
	return nil
}

// A curious cause uses the scope whenever it is asked what it is.
type curious struct{ ask func() }

func (*curious) Error() string   { return "curious" }
func (c *curious) Is(error) bool { c.ask(); return false }

func TestUsersErrorsAreAskedWithoutALock(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner context.Context
		asked := 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				inner = ctx
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) })
				<-ctx.Done()
				return context.Cause(ctx)
			})
			time.Sleep(time.Second)
			return &curious{func() {
				asked++
				async.NewPromise[int](inner)
				_ = inner.Err()
			}}
		})
		require.IsType(t, (*curious)(nil), err)
		require.ErrorIs(t, err, err)
	})
}
