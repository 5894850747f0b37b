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

var errRun = errors.New("the run failed")

// ends are the ways in which a run fails.
var ends = map[string]func(){
	"error":    nil,
	"panic":    func() { panic(errRun) },
	"goexit":   runtime.Goexit,
	"nilpanic": func() { panic(nil) }, //nolint:govet // of old
}

// failing returns a handler that fails n times in that way, then returns nil, and
// the number of its runs.
func failing(n int32, end func()) (func(context.Context) error, *atomic.Int32) {
	runs := new(atomic.Int32)
	return func(context.Context) error {
		switch {
		case runs.Add(1) > n:
			return nil
		case end != nil:
			end()
		}
		return errRun
	}, runs
}

// restartable are the functions that Restart is an option of, as one that waits
// for what it has started.
var restartable = map[string]func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error{
	"Go": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, f, opts...); return nil })
	},
	"Start": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		_, err := async.Start(ctx, f, opts...).Join(ctx)
		return err
	},
	"Execute": func(ctx context.Context, f func(context.Context) error, opts ...async.TaskOption) error {
		v, err := async.Execute(ctx, func(ctx context.Context) (int, error) { return 42, f(ctx) }, opts...).Join(ctx)
		if err == nil && v != 42 {
			return fmt.Errorf("the value is %d", v)
		}
		return err
	},
}

// everySecond is what most tests of pairs restart with.
var everySecond = async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})

func TestARunThatFailsIsFollowedByAnother(t *testing.T) {
	for name, start := range restartable {
		for how, end := range ends {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					f, runs := failing(3, end)
					require.NoError(t, start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})))
					require.EqualValues(t, 4, runs.Load())
					require.Equal(t, 3*time.Second, time.Since(begin))
				})
			})
		}
	}
}

func TestARunThatReturnsNilIsTheLast(t *testing.T) {
	for name, start := range restartable {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				f, runs := failing(0, nil)
				require.NoError(t, start(ctx, f, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})))
				require.EqualValues(t, 1, runs.Load())
			})
		})
	}
}

func TestAFinalFailureIsNotRetried(t *testing.T) {
	for name, start := range restartable {
		for how, fail := range map[string]func() error{
			"itself":  func() error { return async.Final(errRun) },
			"wrapped": func() error { return fmt.Errorf("x: %w", async.Final(errRun)) },
			"joined":  func() error { return errors.Join(errPlanted, async.Final(errRun)) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					runs := 0
					err := start(ctx, func(context.Context) error {
						if runs++; runs < 3 {
							return errPlanted
						}
						return fail()
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
					require.ErrorIs(t, err, errRun)
					require.Equal(t, 3, runs)
					require.Equal(t, how == "itself", err == errRun)
					require.False(t, errors.As(err, new(*async.RestartError)))
				})
			})
		}
	}
	require.NoError(t, async.Final(nil))
	require.ErrorIs(t, async.Final(errRun), errRun)
	require.EqualError(t, async.Final(errRun), errRun.Error())
}

func TestTheNextRunStartsWhenAllOfTheLastHasEnded(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var busy atomic.Int32
				runs := 0
				enter := func() { require.EqualValues(t, 1, busy.Add(1), "runs overlap") }
				_, err := async.Start(ctx, func(ctx context.Context) error {
					enter()
					async.OnExit(ctx, func(ctx context.Context, outcome error) error {
						require.Equal(t, runs < 4, outcome != nil)
						time.Sleep(time.Second)
						busy.Add(-1)
						return nil
					})
					async.Go(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { time.Sleep(5 * time.Second); return nil })
						<-ctx.Done()
						return nil
					}, async.Daemon())
					if runs++; runs == 4 {
						return nil
					}
					if end != nil {
						end()
					}
					return errRun
				}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
				require.NoError(t, err)
				require.Zero(t, busy.Load())
			})
		})
	}
}

func TestEachRunHasAContextOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var before context.Context
		_, err := async.Start(ctx, func(ctx context.Context) error {
			require.NoError(t, ctx.Err())
			if before == nil {
				before = ctx
				return errRun
			}
			require.Equal(t, errRun, context.Cause(before))
			return nil
		}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
		require.NoError(t, err)
	})
}

// TestAForeignDeadlineIsAFailureAsAnyOther: whether the task was told to stop is
// asked of its own context.
func TestAForeignDeadlineIsAFailureAsAnyOther(t *testing.T) {
	for name, err := range map[string]error{"deadline": context.DeadlineExceeded, "canceled": context.Canceled, "ended": async.ErrScopeEnded} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error {
						if runs++; runs < 4 {
							return fmt.Errorf("call: %w", err)
						}
						return nil
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
					return nil
				}))
				require.Equal(t, 4, runs)
			})
		})
	}
}

// TestAnInnerTaskThatIsGivenUpIsAFailureOfTheOuterRun.
func TestAnInnerTaskThatIsGivenUpIsAFailureOfTheOuterRun(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		outer, inner := 0, 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				outer++
				async.Go(ctx, func(context.Context) error { inner++; return errRun },
					async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}), async.Name("inner"))
				<-ctx.Done()
				return nil
			}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("outer"))
			return nil
		})
		require.Equal(t, 3, outer)
		require.Equal(t, 6, inner)
		require.EqualError(t, err, "async: outer: given up after 3 failures within 1m0s; last failure: inner: given up after 2 failures within 1m0s; last failure: the run failed")
	})
}
