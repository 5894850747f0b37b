package async_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestADaemonThatStopsWhenToldFailsNobody: what real services return as they
// stop is not a failure of a scope that went well.
func TestADaemonThatStopsWhenToldFailsNobody(t *testing.T) {
	for name, daemon := range map[string]func(ctx context.Context) error{
		"server": func(ctx context.Context) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			s := &http.Server{ReadHeaderTimeout: time.Second}
			defer context.AfterFunc(ctx, func() { s.Close() })()
			return s.Serve(l)
		},
		"process": func(ctx context.Context) error { return exec.CommandContext(ctx, "sleep", "60").Run() },
		"words":   func(ctx context.Context) error { <-ctx.Done(); return errors.New("rpc: code = Canceled") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				async.Go(ctx, daemon, async.Daemon())
				async.Start(ctx, daemon, async.Daemon())
				return nil
			}))
		})
	}
}

// TestWhatADaemonSaysCounts unless its scope has told it to stop.
func TestWhatADaemonSaysCounts(t *testing.T) {
	own := errors.New("own words")
	stopped := func(ctx context.Context) error { <-ctx.Done(); return own }
	for name, test := range map[string]struct {
		daemon func(ctx context.Context) error
		opts   []async.TaskOption
		body   error
		parent bool // is cancelled
		want   error
	}{
		"dismissed":                      {stopped, nil, nil, false, nil},
		"stopped by the failing body":    {stopped, nil, errPlanted, false, errPlanted},
		"stopped with its scope's owner": {stopped, nil, nil, true, nil},
		"fails by itself":                {func(context.Context) error { return own }, nil, nil, false, own},
		"its own timeout":                {stopped, []async.TaskOption{async.Timeout(time.Second)}, nil, false, own},
		"its own heartbeat":              {stopped, []async.TaskOption{async.Heartbeat(time.Second)}, nil, false, async.ErrNoBeat},
		"its exit hook fails": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return own })
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, own},
		"a task of it stops": {func(ctx context.Context) error {
			async.Go(ctx, stopped)
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, nil},
		"a task of it fails by itself": {func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return own })
			return async.Sleep(ctx, time.Hour)
		}, nil, nil, false, own},
		"it calls Goexit": {func(ctx context.Context) error {
			<-ctx.Done()
			runtime.Goexit()
			return nil
		}, nil, nil, false, async.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, test.daemon, append(test.opts, async.Daemon())...)
					if test.opts != nil {
						time.Sleep(time.Minute) // the daemon ends first
					}
					if test.parent {
						stop()
					}
					time.Sleep(time.Second)
					return test.body
				})
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.want)
				}
				if test.body != nil {
					require.True(t, err == test.body || slices.Equal(err.(*async.ScopeError).Errors, []error{test.body}), "the daemon adds no failure")
				}
			})
		})
	}
}

func TestADaemonThatPanicsAsItStopsIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); plantedPanic(); return nil }, async.Daemon())
				return nil
			})
		}), errPlanted)
	})
}

// TestWhatADaemonSaysIsTold to observers and to its awaiters, failure or not.
func TestWhatADaemonSaysIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own words")
		var seen error
		var f *async.Future[struct{}]
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f = async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return own }, async.Daemon(), async.Name("daemon"))
			return nil
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			if e.Kind == async.EventEnd && e.Task == "daemon" {
				seen = e.Err
			}
		}))))
		require.ErrorIs(t, seen, own)
		_, err := f.Wait(ctx)
		require.ErrorIs(t, err, own)
		require.ErrorIs(t, err, async.ErrDismissed)
	})
}

// TestWhatATaskSaysAsItStopsIsItsOwn: it is told beside what went wrong in the
// task, but it is no failure of the scope.
func TestWhatATaskSaysAsItStopsIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own, below := errors.New("own words"), errors.New("below")
		stops := func(end func(ctx context.Context) error) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return end(ctx) })
				<-ctx.Done()
				return own
			}
		}
		var f *async.Future[struct{}]
		err := async.Scope(ctx, func(ctx context.Context) error {
			f = async.Start(ctx, stops(func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return below })
				return nil
			}), async.Daemon())
			return nil
		})
		require.ErrorIs(t, err, below)
		require.NotErrorIs(t, err, own)
		_, err = f.Wait(ctx)
		require.ErrorIs(t, err, below)
		require.ErrorIs(t, err, own)

		require.ErrorIs(t, panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f = async.Start(ctx, stops(func(context.Context) error { plantedPanic(); return nil }), async.Daemon())
				return nil
			})
		}), errPlanted)
		_, err = f.Wait(ctx)
		require.ErrorIs(t, err, errPlanted) // and the root is told of the rest
	})
}
