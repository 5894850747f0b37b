package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

func TestAPanicOfAContender(t *testing.T) {
	late := func(ctx context.Context) (int, error) { <-ctx.Done(); plantedPanic(); return 0, nil }
	early := func(ctx context.Context) (int, error) { time.Sleep(time.Second); plantedPanic(); return 0, nil }
	for name, test := range map[string]struct {
		choose func(ctx context.Context) error
		given  bool // to who awaits the choice
		raised bool // by the scope
	}{
		"it is the outcome of the race": {func(ctx context.Context) error {
			return second(async.Race(ctx, panicking, after(1, 1, nil)).Await(ctx, 0))
		}, true, false},
		"of All": {func(ctx context.Context) error {
			return second(async.All(ctx, panicking, after(1, 1, nil)).Await(ctx, 0))
		}, true, false},
		"of Any with others": {func(ctx context.Context) error {
			return second(async.Any(ctx, panicking, after(1, 1, errRace)).Await(ctx, 0))
		}, true, false},
		"before another wins": {func(ctx context.Context) error {
			return second(async.Any(ctx, early, after(time.Hour, 1, nil)).Await(ctx, 0))
		}, false, true},
		"after the decision": {func(ctx context.Context) error { return second(async.Race(ctx, late, after(1, 1, nil)).Await(ctx, 0)) }, false, true},
		"of a predicate": {func(ctx context.Context) error {
			return second(async.Until(ctx, func(async.Result[int]) bool { plantedPanic(); return true }, after(1, 1, nil)).Await(ctx, 0))
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var given error
				told := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error { given = test.choose(ctx); return nil })
				})
				var p *async.PanicError
				require.Equal(t, test.given, errors.As(given, &p), "given: %v", given)
				require.Equal(t, test.raised, errors.As(told, &p), "raised: %v", told)
				if test.raised || test.given {
					require.Contains(t, string(p.Stack), "plantedPanic")
				}
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestGoexitOfALoserIsNotSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Race(ctx, after(time.Second, 1, nil), func(ctx context.Context) (int, error) { <-ctx.Done(); runtime.Goexit(); return 0, nil }).Await(ctx, 0)
			require.NoError(t, err)
			return nil
		}), async.ErrGoexit)
	})
}

// TestErrorsOfLosersAreDropped with what they started joined.
func TestErrorsOfLosersAreDropped(t *testing.T) {
	eachRace(t, races, func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int]) {
		joined := false
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			v, err := race(ctx, after(time.Second, 1, nil), func(ctx context.Context) (int, error) {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Hour); joined = true; return errRace })
				<-ctx.Done()
				return 0, errRace
			}).Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, v)
			return nil
		}))
		require.True(t, joined)
	})
}

// TestValuesThatNobodyIsGivenAreDiscardedOnce counts connections.
func TestValuesThatNobodyIsGivenAreDiscardedOnce(t *testing.T) {
	whenStopped := func(v int) contender { return func(ctx context.Context) (int, error) { <-ctx.Done(); return v, nil } }
	at := func(s, v int) contender {
		return func(context.Context) (int, error) { time.Sleep(time.Duration(s) * time.Second); return v, nil }
	}
	fails := func(s int) contender {
		return func(context.Context) (int, error) { time.Sleep(time.Duration(s) * time.Second); return 0, errRace }
	}
	for name, test := range map[string]struct {
		run  func(ctx context.Context, w func(...contender) []contender) []int // what was given
		want []int                                                             // what was discarded
	}{
		"Race": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Race(ctx, w(at(1, 1), whenStopped(2), at(3, 3), fails(2))...).Await(ctx, 0)
			return []int{v}
		}, []int{2, 3}},
		"Any, some failing": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Any(ctx, w(fails(1), at(2, 2), whenStopped(3))...).Await(ctx, 0)
			return []int{v}
		}, []int{3}},
		"Quorum": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Quorum(ctx, 2, w(at(1, 1), at(2, 2), at(3, 3), whenStopped(4))...).Await(ctx, 0)
			return v
		}, []int{3, 4}},
		"Quorum that fails": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Quorum(ctx, 3, w(at(1, 1), fails(2), fails(3), whenStopped(4), fails(4))...).Await(ctx, 0)
			return v
		}, []int{1, 4}},
		"All that fails": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.All(ctx, w(at(1, 1), fails(2), at(3, 3))...).Await(ctx, 0)
			return v
		}, []int{1, 3}},
		"All": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.All(ctx, w(at(1, 1), at(3, 3))...).Await(ctx, 0)
			return v
		}, nil},
		"Until": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Until(ctx, func(r async.Result[int]) bool { return r.Value == 2 }, w(at(1, 1), at(2, 2), at(3, 3))...).Await(ctx, 0)
			return []int{v}
		}, []int{1, 3}},
		"Until without a winner": {func(ctx context.Context, w func(...contender) []contender) []int {
			_, _ = async.Until(ctx, func(r async.Result[int]) bool { return false }, w(at(1, 1), at(2, 2))...).Await(ctx, 0)
			return nil
		}, []int{1, 2}},
		"Hedge": {func(ctx context.Context, w func(...contender) []contender) []int {
			v, _ := async.Hedge(ctx, time.Second, w(at(9, 1), at(9, 3), at(1, 2))...).Await(ctx, 0)
			return []int{v}
		}, []int{1, 3}},
		"a winner after an expiry was told": {func(ctx context.Context, w func(...contender) []contender) []int {
			f := async.Race(ctx, w(at(5, 1), at(6, 2))...)
			_, told := f.Await(ctx, time.Second)
			_, err := f.Await(ctx, 0)
			if !errors.Is(err, told) {
				panic(err)
			}
			return nil
		}, []int{1, 2}},
		"a quorum after an expiry was told": {func(ctx context.Context, w func(...contender) []contender) []int {
			f := async.Quorum(ctx, 2, w(at(5, 1), at(6, 2), at(7, 3))...)
			_, _ = f.Await(ctx, time.Second)
			_, _ = f.Await(ctx, 0)
			return nil
		}, []int{1, 2, 3}},
		"Settle keeps all": {func(ctx context.Context, w func(...contender) []contender) []int {
			r, _ := async.Settle(ctx, w(at(5, 1), at(6, 2))...).Await(ctx, 0)
			return []int{r[0].Value, r[1].Value}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var mu sync.Mutex
				var discarded []int
				wrap := func(tasks ...contender) []contender {
					return async.Discarding(func(v int) {
						mu.Lock()
						defer mu.Unlock()
						discarded = append(discarded, v)
					}, tasks...)
				}
				var given []int
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { given = test.run(ctx, wrap); return nil }))
				require.ElementsMatch(t, test.want, discarded)
				for _, v := range given {
					require.NotContains(t, discarded, v)
				}
			})
		})
	}
}

// TestAChoiceThatNobodyAwaits fails its scope like any future.
func TestAChoiceThatNobodyAwaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Race(ctx, after(time.Second, 0, errRace))
			return nil
		}), errRace)
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error { async.Any[int](ctx); return nil }), async.ErrNoTasks)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { async.All[int](ctx); return nil }))
	})
}

// TestOutcomesOfSettleThatNobodyTakesAreTheScopes and those that are taken are
// not.
func TestOutcomesOfSettleThatNobodyTakesAreTheScopes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Settle(ctx, after(0, 1, nil), after(0, 0, errRace))
			return nil
		}), errRace)
		told := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Settle(ctx, panicking); return nil })
		})
		require.ErrorIs(t, told, errPlanted)
	})
}

func exiting(context.Context) (int, error) { runtime.Goexit(); return 0, nil }

func panicking(context.Context) (int, error) { plantedPanic(); return 0, nil }
