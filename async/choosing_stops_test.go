package async_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestStoppingAChoice(t *testing.T) {
	eachRace(t, races, func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int]) {
		start := time.Now()
		causes := make(chan error, 4)
		obedient := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return 0, ctx.Err()
		}
		stubborn := func(ctx context.Context) (int, error) { obedient(ctx); time.Sleep(time.Minute); return 7, nil }

		f := race(ctx, stubborn, stubborn)
		_, err := f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(start), 2*time.Second, "on time")
		require.Equal(t, async.StateAborting, f.State())
		require.Equal(t, err, <-causes)
		v, err := f.Await(ctx, 0)
		require.NoError(t, err, "a later wait gets the real outcome")
		require.Equal(t, 7, v)

		f = race(ctx, obedient, obedient)
		f.Cancel(errCancelBoom)
		_, err = f.Await(ctx, 0)
		require.ErrorIs(t, err, errCancelBoom)
	})
}

func TestAChoiceInACancelledScopeIsAnEcho(t *testing.T) {
	for name, race := range races {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					race(ctx, after(time.Hour, 1, nil), after(time.Hour, 2, nil))
					time.Sleep(time.Second)
					return errCancelBoom
				})
				require.Equal(t, errCancelBoom, err, "echoes are not listed")
			})
		})
	}
}

func TestHedgeStartsNoMoreOnceStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var started atomic.Int32
		task := func(d time.Duration) contender {
			return func(ctx context.Context) (int, error) {
				started.Add(1)
				<-ctx.Done()
				time.Sleep(d)
				return 0, ctx.Err()
			}
		}
		f := async.Hedge(ctx, time.Second, task(0), task(time.Hour), task(0), task(0))
		_, err := f.Await(ctx, 1500*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = f.Await(ctx, 0)
		require.Error(t, err)
		require.EqualValues(t, 2, started.Load())
	})
}

func TestChoosingOnAnEndedScope(t *testing.T) {
	var kept context.Context
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }))
	for name, race := range map[string]func(ctx context.Context, tasks ...contender) *async.Future[int]{"Race": async.Race[int], "Any": async.Any[int]} {
		t.Run(name, func(t *testing.T) {
			for _, tasks := range [][]contender{nil, {panics}} {
				_, err := race(kept, tasks...).Await(t.Context(), 0)
				require.ErrorIs(t, err, async.ErrScopeEnded)
			}
		})
	}
}

func TestMisuseOfChoosingPanics(t *testing.T) {
	ctx := t.Context()
	for name, f := range map[string]func(){
		"nil task":      func() { async.Race(ctx, nil, panics) },
		"nil predicate": func() { async.Until(ctx, nil, panics) },
		"quorum of 0":   func() { async.Quorum(ctx, 0, panics) },
		"nil discard":   func() { async.Discarding(nil, panics) },
		"discard nil":   func() { async.Discarding(func(int) {}, nil) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, f) })
	}
}

func TestAPredicateIsNeverCalledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, calls atomic.Int32
		wins := func(r async.Result[int]) bool {
			if inside.Add(1) > 1 {
				t.Error("called by two at once")
			}
			time.Sleep(time.Second) // all others end meanwhile
			inside.Add(-1)
			return calls.Add(1) == 5
		}
		var tasks []contender
		for i := range 20 {
			tasks = append(tasks, after(0, i, nil))
		}
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			_, err := async.Until(ctx, wins, tasks...).Await(ctx, 0)
			return err
		}))
		require.EqualValues(t, 5, calls.Load(), "nor after the decision")
	})
}
