package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// errExiting has methods that call Goexit, as those of an error do that uses
// require with the t of a test. called counts the calls.
type errExiting struct {
	error
	called *atomic.Int32
}

func (e errExiting) exit()         { e.called.Add(1); runtime.Goexit() }
func (e errExiting) Is(error) bool { e.exit(); return true }
func (e errExiting) As(any) bool   { e.exit(); return true }
func (e errExiting) Unwrap() error { e.exit(); return nil }

// TestAnErrorWhoseMethodsCallGoexitHoldsNobodyUp: the goroutine of the task ends when
// the outcome of that is made, and the scope does not wait for ever. If it is the
// goroutine that has called Scope, that ends, as with any Goexit there.
func TestAnErrorWhoseMethodsCallGoexitHoldsNobodyUp(t *testing.T) {
	cancelled := func(start func(ctx context.Context, bad error)) func(ctx context.Context, bad error) error {
		return func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error { start(ctx, bad); return errPlanted })
		}
	}
	for name, use := range map[string]func(ctx context.Context, bad error) error{
		"of a Go task that was told to stop": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, stopsWith(bad))
		}),
		"of a Go task that has started another": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, nothing); return stopsWith(bad)(ctx) })
		}),
		"wrapped": cancelled(func(ctx context.Context, bad error) {
			async.Go(ctx, stopsWith(fmt.Errorf("reading: %w", errors.Join(bad, bad))))
		}),
		"beside a panic that is returned": cancelled(func(ctx context.Context, bad error) {
			f := async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, stopsWith(bad))
				time.Sleep(time.Nanosecond)
				panic(errPlanted)
			})
			async.Go(ctx, func(ctx context.Context) error { _, err := f.Join(ctx); return err })
		}),
		"of a future": cancelled(func(ctx context.Context, bad error) { async.Start(ctx, stopsWith(bad)) }),
		"of a body": func(ctx context.Context, bad error) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return async.Scope(ctx, stopsWith(bad))
		},
		"of an item": cancelled(func(ctx context.Context, bad error) {
			async.ForkJoin(ctx, []int{1, 2}, func(ctx context.Context, _ int) (int, error) { return 0, stopsWith(bad)(ctx) })
		}),
		"as a cause": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, stopsWith(errPlanted))
			f.Cancel(bad)
			_, err := f.Join(ctx)
			return errors.Join(err, async.Scope(ctx, func(context.Context) error { return bad }))
		},
		"of a run": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad }, async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 2})).Await(ctx, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var called atomic.Int32
				ended := make(chan error, 1)
				go func() {
					defer close(ended)
					ended <- use(ctx, errExiting{errors.New("exits"), &called})
				}()
				if err, came := <-ended; came {
					require.Error(t, err)
				} else {
					require.Contains(t, []string{"of a body", "as a cause"}, name)
				}
				if name != "as a cause" {
					require.NotZero(t, called.Load(), "nothing was asked")
				}
			})
		})
	}
}
