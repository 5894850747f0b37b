package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// notWritten says more than why something was stopped.
type notWritten struct{ error }

func (e notWritten) Error() string { return "12 rows were not written: " + e.error.Error() }
func (e notWritten) Unwrap() error { return e.error }

// repeats starts tasks in the scope of ctx that return why a context was cancelled that is derived from
// around, as that of a call is that several tasks share. Package context may tell that one first.
func repeats(ctx, around context.Context) {
	for range 10 {
		shared := derive(around)[0]
		for range 30 {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
		}
		async.Go(ctx, func(ctx context.Context) error {
			ctx.Done()
			<-shared.Done()
			return notWritten{shared.Err()}
		})
	}
}

// stopsFromOutside are the ways in which package context cancels a scope, and the engine does not.
var stopsFromOutside = map[string]func(ctx context.Context) error{
	"ctx": func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return async.Scope(ctx, func(ctx context.Context) error { repeats(ctx, ctx); return nil })
	},
	"ctx, which others have, too": func(around context.Context) error {
		around, cancel := context.WithCancel(around)
		time.AfterFunc(time.Second, cancel)
		return async.Scope(around, func(ctx context.Context) error { repeats(ctx, around); return nil })
	},
	"deadline of ctx": func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return async.Scope(ctx, func(ctx context.Context) error { repeats(ctx, ctx); return nil })
	},
	"Timeout": func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error { repeats(ctx, ctx); return nil }, async.Timeout(time.Second))
	},
	"Timeout further out": func(ctx context.Context) error {
		return async.Scope(ctx, func(around context.Context) error {
			err := async.Scope(around, func(ctx context.Context) error { repeats(ctx, around); return nil },
				async.Timeout(time.Hour))
			if errors.As(err, new(notWritten)) {
				err = errors.Join(err, errPlanted) // or it would be an echo here
			}
			return err
		}, async.Timeout(time.Second))
	},
	"ctx of a task": func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := async.Start(ctx, func(ctx context.Context) error { repeats(ctx, ctx); return nil }).Join(ctx)
			return err
		})
	},
}

// TestNoEchoOvertakesPackageContext, which tells one context after another that it is cancelled.
func TestNoEchoOvertakesPackageContext(t *testing.T) {
	for name, scope := range stopsFromOutside {
		t.Run(name, func(t *testing.T) {
			for i := range fewer(200, 10) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := scope(ctx)
					var list *async.ScopeError
					require.ErrorAs(t, err, &list)
					if errors.As(err, new(notWritten)) { // not among those that were stopped
						t.Fatalf("%d: %v", i, err)
					}
				})
			}
		})
	}
}

// TestADaemonUnderWithoutCancelThatIsDismissedTooLate: it hears of its dismissal from another, also in a scope
// that was cancelled before, which such a daemon does not hear of.
func TestADaemonUnderWithoutCancelThatIsDismissedTooLate(t *testing.T) {
	bad := errors.New("bad")
	for name, body := range map[string]error{"well": nil, "cancelled": bad} {
		t.Run(name, func(t *testing.T) {
			for i := range fewer(300, 100) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := async.Scope(ctx, func(ctx context.Context) error {
						alone := context.WithoutCancel(ctx)
						told := async.Start(alone, echoes, async.Daemon())
						idlers(alone, async.Daemon())
						async.Go(alone, func(ctx context.Context) error {
							_, _ = told.Join(ctx)
							return errors.New("server closed")
						}, async.Daemon())
						return body
					})
					if !errors.Is(err, body) || errors.As(err, new(*async.ScopeError)) {
						t.Fatalf("%d: %v", i, err)
					}
				})
			}
		})
	}
}

// stopsOnShutdown are what Shutdown cancels one after another: what runs under WithoutCancel in one scope,
// and scopes at the root.
var stopsOnShutdown = map[string]func(ctx context.Context, told, early func(context.Context) error, end func(error)){
	"tasks under WithoutCancel": func(ctx context.Context, told, early func(context.Context) error, end func(error)) {
		async.Detach(ctx, "scope", func(ctx context.Context) error {
			end(async.Scope(ctx, func(ctx context.Context) error {
				ctx = context.WithoutCancel(ctx)
				async.Go(ctx, early)
				idlers(ctx)
				async.Go(ctx, told)
				idlers(ctx)
				async.Go(ctx, early)
				return nil
			}))
			return nil
		})
	},
	"scopes": func(ctx context.Context, told, early func(context.Context) error, end func(error)) {
		scope := func(f func(context.Context) error) {
			async.Detach(ctx, "scope", func(ctx context.Context) error {
				end(async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, f); return nil }))
				return nil
			})
		}
		scope(told)
		for range 50 {
			scope(echoes)
		}
		scope(early)
	},
}

// TestNoEchoOvertakesShutdown, which cancels one after another.
func TestNoEchoOvertakesShutdown(t *testing.T) {
	for name, start := range stopsOnShutdown {
		t.Run(name, func(t *testing.T) {
			for i := range fewer(300, 100) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					ctx, _ = asynctest.Root(ctx)
					heard := make(chan struct{})
					told := func(ctx context.Context) error { <-ctx.Done(); close(heard); return nil }
					early := func(ctx context.Context) error {
						<-heard
						return fmt.Errorf("12 rows were not written: %w", async.ErrShutdown)
					}
					var wrong atomic.Pointer[error]
					start(ctx, told, early, func(err error) {
						var list *async.ScopeError
						if err != nil && (!errors.As(err, &list) || list.Cause != async.ErrShutdown || len(list.Errors) > 0) {
							wrong.Store(&err)
						}
					})
					synctest.Wait()
					now, cancel := context.WithCancel(ctx)
					cancel()
					require.NoError(t, async.Shutdown(now))
					if err := wrong.Load(); err != nil {
						t.Fatalf("%d: %v", i, *err)
					}
				})
			}
		})
	}
}

// TestNoEchoOvertakesTheDismissalOfGroups at a root.
func TestNoEchoOvertakesTheDismissalOfGroups(t *testing.T) {
	for i := range fewer(300, 100) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			ctx, check := asynctest.Root(ctx)
			group := func(f func(ctx context.Context) error) {
				_ = async.NewGroup(ctx).Go(f, async.Daemon())
			}
			done := make(chan error, 1)
			group(func(ctx context.Context) error { <-ctx.Done(); done <- context.Cause(ctx); return nil })
			for range 50 {
				group(func(ctx context.Context) error { <-ctx.Done(); return nil })
			}
			group(func(ctx context.Context) error {
				return fmt.Errorf("12 rows were not written: %w", <-done)
			})
			err := async.Shutdown(ctx)
			if e := check(); err != nil || e != nil {
				t.Fatalf("%d: %v, %v", i, err, e)
			}
		})
	}
}

// TestWhoDoesNotHearOfACancellationRepeatsNone: a task that a cancellation around it leaves alone has failed, if
// it returns why others are stopped.
func TestWhoDoesNotHearOfACancellationRepeatsNone(t *testing.T) {
	for name, alone := range map[string]func(ctx context.Context) context.Context{
		"WithoutCancel": context.WithoutCancel,
		"another ctx": func(ctx context.Context) context.Context {
			other, cancel := context.WithCancel(context.Background())
			async.OnExit(ctx, func(context.Context, error) error { cancel(); return nil })
			return withValuesOf{Context: other, values: ctx}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range fewer(100, 50) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := async.Scope(ctx, func(ctx context.Context) error {
						shared := derive(ctx)[0]
						async.Go(alone(ctx), func(context.Context) error {
							<-shared.Done()
							return notWritten{shared.Err()}
						})
						return nil
					}, async.Timeout(time.Second))
					require.ErrorAs(t, err, new(notWritten))
				})
			}
		})
	}
}

// withValuesOf is a Context that has the values of another.
type withValuesOf struct {
	context.Context
	values context.Context
}

func (c withValuesOf) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
