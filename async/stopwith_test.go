package async_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAnotherContextStops tasks and scopes wherever a channel does.
func TestAnotherContextStops(t *testing.T) {
	for name, in := range insideStopOn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				other, stop := context.WithCancelCause(context.Background())
				ran := false
				_ = async.Scope(ctx, func(ctx context.Context) error {
					in(ctx, async.StopWith(other), func(ctx context.Context) error {
						ran = true
						require.NoError(t, ctx.Err())
						stop(io.EOF)
						require.ErrorIs(t, async.Sleep(ctx, time.Hour), io.EOF)
						require.Equal(t, context.Canceled, ctx.Err())
						require.Equal(t, io.EOF, context.Cause(ctx))
						return nil
					})
					return nil
				})
				time.Sleep(time.Second) // also for a detached task
				synctest.Wait()
				require.True(t, ran)
			})
		})
	}
}

// TestTheCauseOfAnotherContextIsAskedWhenItIsDone, and not when the option is made.
func TestTheCauseOfAnotherContextIsAskedWhenItIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, stop := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { stop(io.EOF) })
		err := async.Scope(ctx, echoes, async.StopWith(other))
		var scope *async.ScopeError
		require.ErrorAs(t, err, &scope)
		require.Equal(t, io.EOF, scope.Cause)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAnotherContextThatIsDoneStopsATaskAsItStarts.
func TestAnotherContextThatIsDoneStopsATaskAsItStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, cancel := context.WithTimeout(context.Background(), -1)
		defer cancel()
		hooked := make(chan error, 1)
		err := async.Scope(ctx, func(ctx context.Context) error {
			require.Equal(t, context.Canceled, ctx.Err(), "the deadline is not its own")
			_, has := ctx.Deadline()
			require.False(t, has)
			return context.Cause(ctx)
		}, async.StopWith(other))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		err = async.Scope(ctx, func(ctx context.Context) error {
			hook := async.OnAbort(func(_ context.Context, cause error) error { hooked <- cause; return nil })
			_, err := async.Start(ctx, echoes, async.StopWith(other), hook).Join(ctx)
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, context.DeadlineExceeded, <-hooked)
	})
}

// TestAnotherContextWithdrawsWhatQueues, a promise and the workers of a fork, too.
func TestAnotherContextWithdrawsWhatQueues(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, stop async.Option) error{
		"task": func(ctx context.Context, stop async.Option) error {
			_, err := async.Start(ctx, failsHook, stop).Join(ctx)
			return err
		},
		"promise": func(ctx context.Context, stop async.Option) error {
			f, _ := async.NewPromise[int](ctx, stop)
			_, err := f.Join(ctx)
			return err
		},
		"fork": func(ctx context.Context, stop async.Option) error {
			_, err := async.ForkJoin(ctx, []int{1, 2}, func(context.Context, int) (int, error) { return 0, errPlanted }, stop).Join(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				other, stop := context.WithCancelCause(context.Background())
				time.AfterFunc(time.Second, func() { stop(io.EOF) })
				var err error
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
					begun := time.Now()
					err = start(ctx, async.StopWith(other))
					require.Less(t, time.Since(begun), time.Minute)
					return nil
				}, async.Limit(1))
				require.ErrorIs(t, err, io.EOF)
			})
		})
	}
}

// A registry is a context that says how many functions wait for its end.
type registry struct {
	context.Context
	waiting int
}

// Value hides the context from package context, which would not ask AfterFunc else.
func (*registry) Value(any) any { return nil }

func (r *registry) AfterFunc(f func()) func() bool {
	r.waiting++
	stop := context.AfterFunc(r.Context, f)
	return func() bool { r.waiting--; return stop() }
}

// TestNothingStandsWithAnotherContextOnceAScopeHasEnded, and no goroutine waits for it.
func TestNothingStandsWithAnotherContextOnceAScopeHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		done, cancel := context.WithCancel(context.Background())
		defer cancel()
		other := &registry{Context: done}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			require.Equal(t, 1, other.waiting)
			_, err := async.Start(ctx, idle, async.StopWith(other)).Join(ctx)
			require.Equal(t, 1, other.waiting)
			return err
		}, async.StopWith(other)))
		require.Zero(t, other.waiting)
	})
}

// TestAnotherContextMayBeDoneAsItsScopeEnds: nothing is left, whichever comes first.
func TestAnotherContextMayBeDoneAsItsScopeEnds(t *testing.T) {
	for i := range fewer(3000, 100) {
		other, stop := context.WithCancelCause(context.Background())
		stopped := make(chan struct{})
		go func() { stop(io.EOF); close(stopped) }()
		with := async.StopWith(other)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			switch i % 3 {
			case 0:
				f, p := async.NewPromise[int](ctx, with)
				async.Go(ctx, func(context.Context) error { p.Resolve(1); return nil })
				_, _ = f.Wait(ctx)
			case 1:
				for range 3 {
					async.Go(ctx, idle, with)
				}
			case 2:
				_, _ = async.Start(ctx, idle, with).Await(ctx, 0)
			}
			return nil
		}, with, async.Limit(1))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		<-stopped
	}
}

// TestAnEchoThatComesBeforeTheCancellation: a task may hear from a sibling why both were
// stopped, and repeat it, before its own context is done.
func TestAnEchoThatComesBeforeTheCancellation(t *testing.T) {
	bad := errors.New("bad")
	for range 1000 {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				for range 3 {
					early := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
					async.Go(ctx, func(ctx context.Context) error {
						_, err := early.Await(context.WithoutCancel(ctx), 0)
						return err
					})
				}
				return bad
			})
			require.Same(t, bad, err)
		})
	}
}
