package async_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestAMissedBeatFailsARun: whatever the handler returns then. Each run has all of
// its time to beat.
func TestAMissedBeatFailsARun(t *testing.T) {
	for name, returned := range map[string]func(ctx context.Context) error{
		"why":   func(ctx context.Context) error { return ctx.Err() },
		"nil":   func(context.Context) error { return nil },
		"other": func(context.Context) error { return errPlanted },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				hooks, runs := 0, 0
				start := func() *async.Future[struct{}] {
					return async.Start(ctx, func(ctx context.Context) error {
						runs++
						for range 3 {
							async.Beat(ctx)
							time.Sleep(time.Second)
						}
						<-ctx.Done()
						return returned(ctx)
					}, everySecond, async.Heartbeat(2*time.Second), async.OnAbort(func(_ context.Context, cause error) error {
						require.ErrorIs(t, cause, async.ErrNoBeat)
						hooks++
						return nil
					}))
				}
				_, err := start().Join(ctx)
				require.ErrorAs(t, err, new(*async.RestartError))
				if name == "other" {
					require.ErrorIs(t, err, errPlanted)
				}
				require.ErrorIs(t, err, async.ErrNoBeat)
				require.Equal(t, 5, runs)
				require.Equal(t, 5, hooks)
			})
		})
	}
}

// TestABeatCountsForTheRunOfItsContext: not for the one that follows.
func TestABeatCountsForTheRunOfItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var before context.Context
		_, err := async.Start(ctx, func(ctx context.Context) error {
			if before == nil {
				before = ctx
				return errRun
			}
			for ctx.Err() == nil {
				async.Beat(before)
				time.Sleep(time.Second)
			}
			return async.Final(context.Cause(ctx))
		}, everySecond, async.Heartbeat(10*time.Second), async.Timeout(time.Minute)).Join(ctx)
		require.ErrorIs(t, err, async.ErrNoBeat)
	})
}

// TestTheAbortHookIsCalledInARun: once, and not between runs.
func TestTheAbortHookIsCalledInARun(t *testing.T) {
	for name, stop := range stops {
		for when, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					own, cancel := context.WithCancelCause(ctx)
					var hooks atomic.Int32
					f := async.Start(own, func(ctx context.Context) error {
						_ = async.Sleep(ctx, lasts)
						return errRun
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}), async.OnAbort(func(_ context.Context, cause error) error {
						require.Equal(t, errPlanted, cause)
						hooks.Add(1)
						return nil
					}))
					time.Sleep(30 * time.Second)
					stop(f, cancel)
					_, err := f.Join(ctx)
					require.ErrorIs(t, err, errPlanted)
					want := int32(0)
					if lasts > 0 {
						want = 1
					}
					require.Equal(t, want, hooks.Load())
				})
			})
		}
	}
}

// TestADaemonIsStartedAgainUntilItIsDismissed: in a run or in the wait, that is no
// failure, whatever it returns then.
func TestADaemonIsStartedAgainUntilItIsDismissed(t *testing.T) {
	closed := errors.New("http: Server closed")
	for name, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
		for how, opts := range map[string][]async.ScopeOption{"plain": nil, "limit": {async.Limit(1)}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					runs := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							if runs++; runs == 1 {
								return errRun
							}
							_ = async.Sleep(ctx, lasts)
							return closed
						}, async.Daemon(), everySecond)
						async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3500*time.Millisecond) })
						return nil
					}, opts...))
					tookAbout(t, 3500*time.Millisecond, begin)
				})
			})
		}
	}
	t.Run("what its tasks say as they stop is no failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
					<-ctx.Done()
					return closed
				}, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Second)
			})
			require.NoError(t, err)
		})
	})
	t.Run("its own timeout is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return closed },
					async.Daemon(), everySecond, async.Timeout(time.Second))
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorIs(t, err, closed)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("given up it is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorAs(t, err, new(*async.RestartError))
		})
	})
}
