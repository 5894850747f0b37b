package async_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestWhoWaitsForALeaderGetsItsValue, though its end ends the wait, too.
func TestWhoWaitsForALeaderGetsItsValue(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, f *async.Future[int]) (int, error){
		"Await": func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Await(ctx, time.Hour) },
		"Wait":  func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Wait(ctx) },
		"derived ctx": func(ctx context.Context, f *async.Future[int]) (int, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return f.Wait(ctx)
		},
		"AwaitAll": func(ctx context.Context, f *async.Future[int]) (int, error) {
			r := async.AwaitAll(ctx, 0, f)[0]
			return r.Value, r.Err
		},
		"by and by": func(ctx context.Context, f *async.Future[int]) (int, error) {
			<-ctx.Done()
			v, err, _ := f.Result()
			return v, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range fewer(500, 20) {
				value := 0
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					f := async.Execute(ctx, answer, async.Leader())
					var err error
					value, err = wait(ctx, f)
					return err
				}, async.Limit(2)))
				require.NotZero(t, value)
			}
		})
	}
}

// TestOneOfManyLeadersLeads, however they race, also with a failure.
func TestOneOfManyLeadersLeads(t *testing.T) {
	for range fewer(2000, 50) {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for range 4 {
				async.Go(ctx, idle, async.Leader())
				async.Start(ctx, echoes)
			}
			return echoes(ctx)
		}, async.DetachAfter(time.Hour))
		require.NoError(t, err)
		err = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(ctx, fail(io.EOF))
			return echoes(ctx)
		})
		require.Equal(t, io.EOF, err)
	}
}

// TestALeaderInATaskLeadsThatTask: its handler is the body. One that is to give a
// value has none when it was cancelled.
func TestALeaderInATaskLeadsThatTask(t *testing.T) {
	handler := func(ctx context.Context) error {
		async.Go(ctx, tick, async.Leader())
		async.Go(ctx, echoes)
		return echoes(ctx)
	}
	value := func(ctx context.Context) (int, error) { return 0, handler(ctx) }
	for name, test := range map[string]struct {
		run  func(ctx context.Context) error
		want error
	}{
		"Go":    {func(ctx context.Context) error { async.Go(ctx, handler); return nil }, nil},
		"Start": {func(ctx context.Context) error { _, err := async.Start(ctx, handler).Await(ctx, 0); return err }, nil},
		"Restart": {func(ctx context.Context) error {
			async.Go(ctx, handler, async.Restart(async.RestartPolicy{Interval: async.Every(1)}))
			return nil
		}, nil},
		"Shield": {func(ctx context.Context) error { return async.Shield(ctx, time.Hour, handler) }, nil},
		"exit hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return handler(ctx) })
			return nil
		}, nil},
		"Execute": {func(ctx context.Context) error { _, err := async.Execute(ctx, value).Await(ctx, 0); return err }, async.ErrDismissed},
		"Execute, Restart": {func(ctx context.Context) error {
			_, err := async.Execute(ctx, value, async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 1})).Await(ctx, 0)
			return err
		}, async.ErrDismissed},
		"All": {func(ctx context.Context) error { _, err := async.All(ctx, value).Await(ctx, 0); return err }, async.ErrDismissed},
		"ForkJoin": {func(ctx context.Context) error {
			all, err := async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return value(ctx) }).Await(ctx, 0)
			return errors.Join(err, all[0].Err)
		}, async.ErrDismissed},
		"Race without a value": {func(ctx context.Context) error {
			_, err := async.Race(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, handler(ctx) }).Await(ctx, 0)
			return err
		}, nil},
		"ForEach": {func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2, 3}), func(ctx context.Context, _ int) error { return handler(ctx) }, async.Limit(2))
		}, nil},
		"Map": {func(ctx context.Context) (err error) {
			for _, e := range async.Map(ctx, slices.Values([]int{1, 2, 3}), func(ctx context.Context, _ int) (int, error) { return value(ctx) }) {
				err = errors.Join(err, e)
			}
			return err
		}, async.ErrDismissed},
		"a value": {func(ctx context.Context) error {
			v, err := async.Execute(ctx, func(ctx context.Context) (int, error) { _ = handler(ctx); return 7, nil }).Await(ctx, 0)
			require.Equal(t, 7, v)
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					err := test.run(ctx)
					require.NoError(t, ctx.Err(), "this scope has no leader")
					return err
				})
				if test.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, test.want)
				}
			})
		})
	}
}

func TestALeaderEndsAGroup(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		require.NoError(t, g.Go(echoes))
		require.NoError(t, g.Go(tick, async.Leader()))
		<-g.Context().Done()
		require.Equal(t, async.ErrDismissed, context.Cause(g.Context()))
		require.NoError(t, g.Stop(ctx, io.EOF))
	})
}

// TestADaemonThatWasToldThatItsScopeIsDoneLeadsNobody: the scope has ended well, and
// its context says so.
func TestADaemonThatWasToldThatItsScopeIsDoneLeadsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var own context.Context
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			own = ctx
			async.OnExit(ctx, func(context.Context, error) error { require.NoError(t, own.Err()); return nil })
			async.Go(ctx, waitHook, async.Leader(), async.Daemon())
			async.Start(ctx, waitHook, async.Leader(), async.Daemon())
			return nil
		}))
	})
}

func TestWhatWithoutCancelProtectsOutlivesItsLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var wrote error = errPlanted
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, idle, async.Leader())
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error { wrote = async.Sleep(ctx, time.Minute); return wrote })
			return nil
		}))
		require.NoError(t, wrote)
	})
}
