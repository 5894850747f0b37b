package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// nilErrors are what a function returns that declares its result as one of our
// types, and returns nil.
var nilErrors = []error{
	(*async.ScopeError)(nil), (*async.PanicError)(nil), (*async.TimeoutError)(nil), (*async.StragglerError)(nil),
	(*async.WatchdogError)(nil), (*async.RejectedError)(nil), (*async.RestartError)(nil), (*async.PollError[int])(nil),
}

// zeroErrors are those with nothing in them.
var zeroErrors = []error{
	new(async.ScopeError), new(async.PanicError), new(async.TimeoutError), new(async.StragglerError),
	new(async.WatchdogError), new(async.RejectedError), new(async.RestartError), new(async.PollError[int]),
}

// TestMethodsOfANilErrorDoNoHarm and its text says that it is nil.
func TestMethodsOfANilErrorDoNoHarm(t *testing.T) {
	for _, err := range nilErrors {
		t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
			require.Regexp(t, `^async: a nil \*\w+Error(\[int\])?$`, err.Error())
			require.NotErrorIs(t, err, io.EOF)
			require.NotErrorIs(t, err, context.Canceled)
			require.NotErrorAs(t, err, new(io.Reader))
			if e, ok := err.(interface{ Timeout() bool }); ok {
				e.Timeout()
			}
		})
	}
	for _, err := range zeroErrors {
		t.Run(fmt.Sprintf("zero %T", err), func(t *testing.T) {
			require.Regexp(t, `^async: `, err.Error())
			require.NotErrorIs(t, err, io.EOF)
			require.NotErrorAs(t, err, new(io.Reader))
		})
	}
}

// TestANilErrorIsAFailureLikeAnother wherever it is returned or is a cause.
func TestANilErrorIsAFailureLikeAnother(t *testing.T) {
	uses := map[string]func(ctx context.Context, bad error) error{
		"of a body": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(context.Context) error { return bad })
		},
		"of a Go task": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return bad })
				return nil
			}, async.Name("deploy"))
		},
		"of a Go task in a cancelled scope": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
				return errPlanted
			})
		},
		"of a daemon": func(ctx context.Context, bad error) error {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad }, async.Daemon())
				return nil
			})
			return bad
		},
		"of a future": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad }).Await(ctx, 0)
			return err
		},
		"of a future that nobody awaits": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { return bad })
				return nil
			})
		},
		"of a cancelled future": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, stopsWith(bad))
			f.Cancel(errPlanted)
			_, err := f.Await(ctx, 1)
			return err
		},
		"as the cause of Cancel": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, joinUntilDone)
			f.Cancel(bad)
			_, err := f.Await(ctx, 1)
			return err
		},
		"as the cause of a ctx": func(ctx context.Context, bad error) error {
			ctx, cancel := context.WithCancelCause(ctx)
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, joinUntilDone)
				cancel(bad)
				return nil
			}, async.Timeout(1e9))
		},
		"of a probe": func(ctx context.Context, bad error) error {
			_, err := async.Repeat(ctx, async.Every(1), func(context.Context) error { return bad }).Await(ctx, 0)
			return err
		},
		"of runs": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad },
				async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 2})).Await(ctx, 0)
			return err
		},
		"of an exit hook": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return bad })
				return errPlanted
			})
		},
		"of a promise": func(ctx context.Context, bad error) error {
			f, p := async.NewPromise[int](ctx)
			p.Reject(bad)
			_, err := f.Await(ctx, 0)
			return err
		},
		"of contenders": func(ctx context.Context, bad error) error {
			_, err := async.Any(ctx, func(context.Context) (int, error) { return 0, bad }, func(context.Context) (int, error) { return 0, bad }).Await(ctx, 0)
			return err
		},
		"of items": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.ForkJoin(ctx, []int{1, 2}, func(context.Context, int) (int, error) { return 0, bad })
				return nil
			})
		},
		"of a pool": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, nothing, async.On(refusingWith{bad})).Await(ctx, 0)
			return err
		},
		"beside a panic": func(ctx context.Context, bad error) (err error) {
			defer func() { err, _ = recover().(error) }()
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, stopsWith(bad))
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		},
	}
	for name, use := range uses {
		for _, bad := range nilErrors {
			t.Run(fmt.Sprintf("%s/%T", name, bad), func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var err error
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { err = use(ctx, bad); return nil }))
					require.Error(t, err)
					_ = err.Error()
					_ = errors.Is(err, io.EOF)
				})
			})
		}
	}
}

// refusingWith is a pool that refuses everything with an error.
type refusingWith struct{ err error }

func (r refusingWith) Execute(func()) error { return r.err }
