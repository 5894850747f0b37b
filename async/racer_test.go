package async_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

type contender = func(context.Context) (int, error)

// after returns a contender that ends d from now, or at once when stopped.
func after(d time.Duration, v int, err error) contender {
	return func(ctx context.Context) (int, error) {
		select {
		case <-time.After(d):
			return v, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

var errRace = errors.New("did not make it")

// races are the ways to choose one of several, for what they have in common.
var races = map[string]func(ctx context.Context, tasks ...contender) *async.Future[int]{
	"Race":  async.Race[int],
	"Any":   async.Any[int],
	"Hedge": func(ctx context.Context, tasks ...contender) *async.Future[int] { return async.Hedge(ctx, 0, tasks...) },
	"Until": func(ctx context.Context, tasks ...contender) *async.Future[int] {
		return async.Until(ctx, func(r async.Result[int]) bool { return r.Err == nil }, tasks...)
	},
}

// quorumOfOne is a way, too, but stands behind another future.
func quorumOfOne(ctx context.Context, tasks ...contender) *async.Future[int] {
	f := async.Quorum(ctx, 1, tasks...)
	return async.Execute(ctx, func(ctx context.Context) (int, error) {
		v, err := f.Wait(ctx)
		if err != nil {
			return 0, err
		}
		return v[0], nil
	})
}

func eachRace(t *testing.T, ways map[string]func(context.Context, ...contender) *async.Future[int],
	f func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int])) {
	for name, race := range ways {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) { f(t, ctx, race) })
		})
	}
}

func TestARaceSettlesWhenItIsDecided(t *testing.T) {
	ways := maps.Clone(races)
	ways["Quorum"] = quorumOfOne
	eachRace(t, ways, func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int]) {
		start := time.Now()
		var causes []error
		var joined atomic.Int32
		err := async.Scope(ctx, func(ctx context.Context) error {
			loser := func(ctx context.Context) (int, error) {
				<-ctx.Done()
				require.Equal(t, time.Second, time.Since(start), "cancelled at that instant")
				causes = append(causes, context.Cause(ctx))
				joined.Add(1)
				return 0, ctx.Err()
			}
			stubborn := func(context.Context) (int, error) {
				time.Sleep(time.Hour)
				joined.Add(1)
				return 2, nil
			}
			v, err := race(ctx, loser, stubborn, after(time.Second, 42, nil)).Await(ctx, time.Minute)
			require.NoError(t, err)
			require.Equal(t, 42, v)
			require.Equal(t, time.Second, time.Since(start), "a stubborn loser costs the winner nothing")
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 2, joined.Load(), "the scope does not end before the losers")
		require.Equal(t, time.Hour, time.Since(start))
		require.Equal(t, []error{async.ErrDecided}, causes)
	})
}

func TestARaceOfOneOfNoneAndOfAThousand(t *testing.T) {
	eachRace(t, races, func(t *testing.T, ctx context.Context, race func(context.Context, ...contender) *async.Future[int]) {
		_, err := race(ctx).Await(ctx, 0)
		require.ErrorIs(t, err, async.ErrNoTasks)

		v, err := race(ctx, after(time.Second, 1, nil)).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 1, v)

		var many []contender
		var ended atomic.Int32
		for i := range 1000 {
			many = append(many, func(ctx context.Context) (int, error) {
				defer ended.Add(1)
				return after(time.Duration(1000-i)*time.Second, i, nil)(ctx)
			})
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			v, err := race(ctx, many...).Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 999, v)
			return nil
		}))
		require.EqualValues(t, 1000, ended.Load())
	})
}

// TestTheOutcomesOfChoosing is a table of what contenders do, one a second, and
// what comes of it and when.
func TestTheOutcomesOfChoosing(t *testing.T) {
	ok := func(s int) contender { return after(time.Duration(s)*time.Second, s, nil) }
	bad := func(s int) contender { return after(time.Duration(s)*time.Second, 0, fmt.Errorf("%w %d", errRace, s)) }
	quorum := func(k int) func(ctx context.Context, tasks ...contender) (any, error) {
		return func(ctx context.Context, tasks ...contender) (any, error) {
			return result(async.Quorum(ctx, k, tasks...).Await(ctx, 0))
		}
	}
	race := func(ctx context.Context, tasks ...contender) (any, error) {
		return result(async.Race(ctx, tasks...).Await(ctx, 0))
	}
	anyOf := func(ctx context.Context, tasks ...contender) (any, error) {
		return result(async.Any(ctx, tasks...).Await(ctx, 0))
	}
	all := func(ctx context.Context, tasks ...contender) (any, error) {
		return result(async.All(ctx, tasks...).Await(ctx, 0))
	}
	until := func(wins func(async.Result[int]) bool) func(ctx context.Context, tasks ...contender) (any, error) {
		return func(ctx context.Context, tasks ...contender) (any, error) {
			return result(async.Until(ctx, wins, tasks...).Await(ctx, 0))
		}
	}
	hedge := func(d time.Duration) func(ctx context.Context, tasks ...contender) (any, error) {
		return func(ctx context.Context, tasks ...contender) (any, error) {
			return result(async.Hedge(ctx, d, tasks...).Await(ctx, 0))
		}
	}
	leader := until(func(r async.Result[int]) bool { return r.Index == 0 || r.Err != nil })
	never := until(func(async.Result[int]) bool { return false })

	for name, test := range map[string]struct {
		choose func(ctx context.Context, tasks ...contender) (any, error)
		tasks  []contender
		want   any
		fails  []string // what the error says
		at     int      // seconds
	}{
		"Race: a value first":                      {race, []contender{ok(2), ok(1), bad(3)}, 1, nil, 1},
		"Race: an error first":                     {race, []contender{ok(2), bad(1), ok(3)}, 0, []string{"make it 1"}, 1},
		"Any: a success after failures":            {anyOf, []contender{bad(1), ok(3), bad(2)}, 3, nil, 3},
		"Any: all fail":                            {anyOf, []contender{bad(1), bad(3), bad(2)}, 0, []string{"make it 1", "make it 2", "make it 3"}, 3},
		"Any: the only one fails":                  {anyOf, []contender{bad(1)}, 0, []string{"make it 1"}, 1},
		"All: values in order":                     {all, []contender{ok(3), ok(1), ok(2)}, []int{3, 1, 2}, nil, 3},
		"All: the first failure":                   {all, []contender{ok(1), bad(2), ok(9)}, []int(nil), []string{"make it 2"}, 2},
		"All: none":                                {all, nil, []int{}, nil, 0},
		"Quorum: as early as it can":               {quorum(2), []contender{bad(1), ok(4), ok(2), ok(9)}, []int{4, 2}, nil, 4},
		"Quorum: of all":                           {quorum(2), []contender{ok(2), ok(1)}, []int{2, 1}, nil, 2},
		"Quorum: impossible as soon as it is":      {quorum(3), []contender{bad(1), ok(2), bad(3), ok(9)}, []int(nil), []string{"no quorum", "make it 1", "make it 3"}, 3},
		"Quorum: more than there are":              {quorum(4), []contender{ok(1), ok(2), ok(3)}, []int(nil), []string{"no quorum"}, 0},
		"Until: the leader ends":                   {leader, []contender{ok(3), ok(1)}, 3, nil, 3},
		"Until: the leader fails":                  {leader, []contender{bad(3), ok(1)}, 0, []string{"make it 3"}, 3},
		"Until: the helper fails":                  {leader, []contender{ok(3), bad(1)}, 0, []string{"make it 1"}, 1},
		"Until: no winner":                         {never, []contender{ok(3), ok(1)}, 0, []string{"no winner"}, 3},
		"Until: no winner, with errors":            {never, []contender{bad(3), ok(1), bad(2)}, 0, []string{"make it 2", "make it 3"}, 3},
		"Hedge: the first is fast enough":          {hedge(2 * time.Second), []contender{ok(1), panics}, 1, nil, 1},
		"Hedge: the second overtakes":              {hedge(2 * time.Second), []contender{ok(9), ok(1), panics}, 1, nil, 3},
		"Hedge: the first wins after all":          {hedge(2 * time.Second), []contender{ok(3), ok(9), panics}, 3, nil, 3},
		"Hedge: a failure starts the next":         {hedge(5 * time.Second), []contender{bad(1), ok(2), panics}, 2, nil, 3},
		"Hedge: a failure sets the timer back":     {hedge(5 * time.Second), []contender{bad(3), ok(7), ok(1)}, 1, nil, 9},
		"Hedge: all fail":                          {hedge(2 * time.Second), []contender{bad(3), bad(3)}, 0, []string{"make it 3"}, 5},
		"Hedge: all fail at once":                  {hedge(time.Hour), []contender{bad(0), bad(0), bad(0)}, 0, []string{"make it 0"}, 0},
		"Hedge: without a delay all start at once": {hedge(0), []contender{ok(3), ok(2), ok(1)}, 1, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				got, err := test.choose(ctx, test.tasks...)
				require.Equal(t, time.Duration(test.at)*time.Second, time.Since(start))
				require.Equal(t, test.want, got)
				if test.fails == nil {
					require.NoError(t, err)
				}
				for _, text := range test.fails {
					require.ErrorContains(t, err, text)
				}
			})
		})
	}
}

func result[T any](v T, err error) (any, error) { return v, err }

func panics(context.Context) (int, error) { panic("started without need") }

func TestSettleGivesEveryOutcomeInOrder(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		got, err := async.Settle(ctx, after(2*time.Second, 1, nil), after(time.Second, 0, errRace), panicking, exiting).Await(ctx, 0)
		require.NoError(t, err)
		require.Len(t, got, 4)
		require.Equal(t, async.Result[int]{Index: 0, Value: 1}, got[0])
		require.Equal(t, async.Result[int]{Index: 1, Err: errRace}, got[1])
		var p *async.PanicError
		require.ErrorAs(t, got[2].Err, &p)
		require.ErrorIs(t, got[3].Err, async.ErrGoexit)
		got, err = async.Settle[int](ctx).Await(ctx, 0)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

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
