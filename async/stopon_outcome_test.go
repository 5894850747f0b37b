package async_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAScopeThatAChannelHasStoppedSaysSo, as with any other cause.
func TestAScopeThatAChannelHasStoppedSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		body  func(ctx context.Context) error
		well  bool
		fails error
	}{
		"body echoes":     {body: echoes},
		"task echoes":     {body: func(ctx context.Context) error { async.Go(ctx, echoes); return nil }},
		"nothing is kept": {body: waitHook, well: true},
		"daemon": {body: func(ctx context.Context) error {
			async.Go(ctx, failsWhenStopped(io.ErrShortWrite), async.Daemon())
			return waitHook(ctx)
		}, well: true},
		"task fails":  {body: func(ctx context.Context) error { async.Go(ctx, failsWhenStopped(io.ErrShortWrite)); return nil }, fails: io.ErrShortWrite},
		"inner scope": {body: func(ctx context.Context) error { return async.Scope(ctx, echoes) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, test.body, async.StopOn(closedAfter(time.Second), io.EOF))
				if test.well {
					require.NoError(t, err)
					return
				}
				var scope *async.ScopeError
				require.ErrorAs(t, err, &scope)
				require.Equal(t, io.EOF, scope.Cause)
				require.ErrorIs(t, err, context.Canceled)
				if test.fails != nil {
					require.Equal(t, []error{test.fails}, scope.Errors)
				} else {
					require.Empty(t, scope.Errors)
				}
			})
		})
	}
}

// TestATaskThatItsOwnChannelHasStoppedHasFailed unless it returned nil, as with its
// own Timeout: nobody around it was told to stop.
func TestATaskThatItsOwnChannelHasStoppedHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		task func(ctx context.Context) error
		want error
	}{
		"echo":      {echoes, io.EOF},
		"own error": {failsWhenStopped(io.ErrShortWrite), io.ErrShortWrite},
		"nil":       {waitHook, nil},
	} {
		stop := func() async.TaskOption { return async.StopOn(closedAfter(time.Second), io.EOF) }
		for kind, body := range map[string]func(ctx context.Context) error{
			"Go":     func(ctx context.Context) error { async.Go(ctx, test.task, stop()); return nil },
			"future": func(ctx context.Context) error { async.Start(ctx, test.task, stop()); return nil },
			"daemon": func(ctx context.Context) error {
				async.Go(ctx, test.task, stop(), async.Daemon())
				return async.Sleep(ctx, time.Minute)
			},
			"awaited": func(ctx context.Context) error {
				_, err := async.Start(ctx, test.task, stop()).Await(ctx, 0)
				return err
			},
			"Restart": func(ctx context.Context) error {
				async.Go(ctx, test.task, stop(), async.Restart(async.RestartPolicy{Interval: async.Every(1)}))
				return nil
			},
			"under WithoutCancel": func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), test.task, stop())
				return nil
			},
			"poll": func(ctx context.Context) error {
				_, err := async.Repeat(ctx, async.Every(time.Minute), test.task, stop()).Await(ctx, 0)
				if test.want == nil {
					require.ErrorIs(t, err, io.EOF) // a repetition that is stopped has not come to its end
					return nil
				}
				return err
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := async.Scope(ctx, body)
					if test.want == nil {
						require.NoError(t, err)
						return
					}
					require.ErrorIs(t, err, test.want)
					require.Zero(t, watchers())
				})
			})
		}
	}
}

func TestAChannelThatWasClosedBeforeStopsATaskAsItStarts(t *testing.T) {
	shut := make(chan struct{})
	close(shut)
	stop := async.StopOn(shut, io.EOF)
	for range fewer(200, 20) {
		hooked := make(chan error, 1)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			require.Equal(t, context.Canceled, ctx.Err())
			f, _ := async.NewPromise[int](ctx, stop)
			_, err := f.Join(ctx)
			require.ErrorIs(t, err, io.EOF)
			f = async.Execute(context.WithoutCancel(ctx), func(ctx context.Context) (int, error) {
				return 1, ctx.Err()
			}, stop, async.OnAbort(func(_ context.Context, cause error) error { hooked <- cause; return nil }))
			_, err = f.Join(ctx)
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, io.EOF, <-hooked)
			return nil
		}, stop)
		require.ErrorIs(t, err, io.EOF)
	}
}

// TestOnlyThatTheChannelIsClosedCounts, not what is sent to it.
func TestOnlyThatTheChannelIsClosedCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ch := make(chan struct{}, 4)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				ch <- struct{}{}
				require.NoError(t, ctx.Err())
			}
			done := ctx.Done()
			for range 3 {
				ch <- struct{}{}
				time.Sleep(time.Second)
				require.NoError(t, ctx.Err())
			}
			close(ch)
			<-done
			require.Equal(t, context.Canceled, context.Cause(ctx), "a nil cause")
			return nil
		}, async.StopOn(ch, nil)))
	})
}

// TestShieldProtectsFromAChannel that stops what is around it.
func TestShieldProtectsFromAChannel(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return ctx.Err() })
			<-ctx.Done()
			return async.Shield(ctx, time.Minute, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
		}, async.StopOn(closedAfter(time.Second), io.EOF))
		require.NoError(t, err)
	})
}

func TestALeaderAndAChannelMayMeet(t *testing.T) {
	for range fewer(2000, 50) {
		ch := make(chan struct{})
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(ctx, func(context.Context) error { close(ch); return nil })
			return echoes(ctx)
		}, async.StopOn(ch, io.EOF))
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}
		require.NotErrorIs(t, err, async.ErrDismissed)
	}
}

// TestAChannelMayBeClosedAsItsScopeEnds: nothing is left, whichever comes first.
func TestAChannelMayBeClosedAsItsScopeEnds(t *testing.T) {
	for i := range fewer(3000, 100) {
		ch, closer := make(chan struct{}), make(chan struct{})
		go func() { close(ch); close(closer) }()
		stop := async.StopOn(ch, io.EOF)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			switch i % 4 {
			case 0:
				_ = ctx.Done()
			case 1:
				f, p := async.NewPromise[int](ctx, stop)
				async.Go(ctx, func(context.Context) error { p.Resolve(1); return nil })
				_, _ = f.Wait(ctx)
			case 2:
				for range 3 {
					async.Go(ctx, idle, stop)
				}
			case 3:
				_, _ = async.Start(ctx, func(ctx context.Context) error { _ = ctx.Done(); return nil }, stop).Await(ctx, 0)
			}
			return nil
		}, stop, async.Limit(1))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		<-closer
		if i%100 == 0 {
			require.Zero(t, watchers())
		}
	}
}

// TestTasksInTasksWithChannelsAreStopped, however many there are.
func TestTasksInTasksWithChannelsAreStopped(t *testing.T) {
	ch := make(chan struct{})
	var nest func(ctx context.Context, depth int) error
	nest = func(ctx context.Context, depth int) error {
		if depth == 0 {
			close(ch)
			for ctx.Err() == nil {
				runtime.Gosched()
			}
			return context.Cause(ctx)
		}
		_, err := async.Start(ctx, func(ctx context.Context) error { return nest(ctx, depth-1) }, async.StopOn(make(chan struct{}), nil)).Join(ctx)
		return err
	}
	_, err := async.Start(asynctest.Context(t), func(ctx context.Context) error { return nest(ctx, 100) }, async.StopOn(ch, io.EOF)).Join(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, watchers())
}
