package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errFull = errors.New("pool is full")

// pool makes an Executor of a function.
type pool func(task func()) error

func (p pool) Execute(task func()) error { return p(task) }

// tryPool has TryExecute, too.
type tryPool struct {
	pool
	try func(task func()) bool
}

func (p tryPool) TryExecute(task func()) bool { return p.try(task) }

// everyThird does odd to every third task and runs the others.
func everyThird(odd func(task func()) error) async.Executor {
	var n atomic.Int32
	return pool(func(task func()) error {
		if n.Add(1)%3 == 0 {
			return odd(task)
		}
		go task()
		return nil
	})
}

// oneSlot blocks while a task runs.
func oneSlot() pool {
	slot := make(chan struct{}, 1)
	return func(task func()) error {
		slot <- struct{}{}
		go func() {
			defer func() { <-slot }()
			task()
		}()
		return nil
	}
}

// executors are as bad as they come. Those that lose tasks say so: what runs on
// them needs a time limit.
var executors = map[string]struct {
	make    func() async.Executor
	refuses bool
	loses   bool
}{
	"goroutines": {make: func() async.Executor { return pool(func(task func()) error { go task(); return nil }) }},
	"inline":     {make: func() async.Executor { return pool(func(task func()) error { task(); return nil }) }},
	"one slot":   {make: func() async.Executor { return oneSlot() }},
	"refusing":   {make: func() async.Executor { return everyThird(func(func()) error { return errFull }) }, refuses: true},
	"panicking":  {make: func() async.Executor { return everyThird(func(func()) error { panic(errFull) }) }, refuses: true},
	"exiting":    {make: func() async.Executor { return everyThird(func(func()) error { runtime.Goexit(); return nil }) }, refuses: true},
	"dropping":   {make: func() async.Executor { return everyThird(func(func()) error { return nil }) }, loses: true},
	"twice": {make: func() async.Executor {
		return everyThird(func(task func()) error { go task(); go task(); return nil })
	}},
	"running what it refuses": {make: func() async.Executor {
		return everyThird(func(task func()) error { task(); return errFull })
	}},
	"recovering": {make: func() async.Executor {
		return pool(func(task func()) error {
			go func() {
				defer func() { _ = recover() }()
				task()
			}()
			return nil
		})
	}},
	"shut down half-way": {make: func() async.Executor {
		var n atomic.Int32
		return pool(func(task func()) error {
			if n.Add(1) > 2 {
				return errFull
			}
			go task()
			return nil
		})
	}, refuses: true},
	"full at first": {make: func() async.Executor {
		p := oneSlot()
		return tryPool{p, func(func()) bool { return false }}
	}},
	"never full": {make: func() async.Executor {
		return tryPool{nil, func(task func()) bool { go task(); return true }}
	}},
}

// primitives are all ways to run something. Each returns what it was given.
var primitives = map[string]func(ctx context.Context, work contender) error{
	"Execute": func(ctx context.Context, work contender) error { return second(async.Execute(ctx, work).Await(ctx, 0)) },
	"Go": func(ctx context.Context, work contender) error {
		async.Go(ctx, func(ctx context.Context) error { return second(work(ctx)) })
		return nil
	},
	"AwaitAll": func(ctx context.Context, work contender) error {
		return errsOf(async.AwaitAll(ctx, 0, async.Execute(ctx, work), async.Execute(ctx, work), async.Execute(ctx, work)))
	},
	"All": func(ctx context.Context, work contender) error {
		return second(async.All(ctx, work, work, work).Await(ctx, 0))
	},
	"Settle": func(ctx context.Context, work contender) error {
		return errsOf2(async.Settle(ctx, work, work, work).Await(ctx, 0))
	},
	"Race": func(ctx context.Context, work contender) error {
		return second(async.Race(ctx, work, work, work).Await(ctx, 0))
	},
	"Any": func(ctx context.Context, work contender) error {
		return second(async.Any(ctx, work, work, work).Await(ctx, 0))
	},
	"Quorum": func(ctx context.Context, work contender) error {
		return second(async.Quorum(ctx, 2, work, work, work).Await(ctx, 0))
	},
	"Until": func(ctx context.Context, work contender) error {
		return second(async.Until(ctx, func(r async.Result[int]) bool { return r.Index == 1 }, work, work, work).Await(ctx, 0))
	},
	"Hedge": func(ctx context.Context, work contender) error {
		return second(async.Hedge(ctx, time.Millisecond, work, work, work).Await(ctx, 0))
	},
	"Poll": func(ctx context.Context, work contender) error {
		return second(async.Poll(ctx, async.Every(time.Second), func(ctx context.Context) (int, bool, error) { v, err := work(ctx); return v, true, err }).Await(ctx, 0))
	},
	"Repeat": func(ctx context.Context, work contender) error {
		return second(async.Repeat(ctx, async.Every(time.Second), func(ctx context.Context) error { return second(work(ctx)) }, async.Attempts(3)).Await(ctx, 0))
	},
	"Watch": func(ctx context.Context, work contender) error {
		return second(async.Watch(ctx, work, async.Every(time.Hour), func(context.Context) error { return nil }).Await(ctx, 0))
	},
	"ForkJoin": func(ctx context.Context, work contender) error {
		return errsOf2(async.ForkJoin(ctx, upTo(7), func(ctx context.Context, _ int) (int, error) { return work(ctx) }).Await(ctx, 0))
	},
	"ForkJoin with a limit": func(ctx context.Context, work contender) error {
		return errsOf2(async.ForkJoin(ctx, upTo(7), func(ctx context.Context, _ int) (int, error) { return work(ctx) }, async.Limit(2)).Await(ctx, 0))
	},
	"ForEach": func(ctx context.Context, work contender) error {
		return async.ForEach(ctx, slices.Values(upTo(7)), func(ctx context.Context, _ int) error { return second(work(ctx)) }, async.Limit(2))
	},
	"Map": func(ctx context.Context, work contender) (failed error) {
		for _, err := range async.Map(ctx, slices.Values(upTo(7)), func(ctx context.Context, _ int) (int, error) { return work(ctx) }, async.Limit(2)) {
			failed = errors.Join(failed, err)
		}
		return failed
	},
	"AsCompleted": func(ctx context.Context, work contender) (failed error) {
		for _, r := range async.AsCompleted(ctx, slices.Values([]func(context.Context) (int, error){work, work, work, work})) {
			failed = errors.Join(failed, r.Err)
		}
		return failed
	},
}

func errsOf(results []async.Result[int]) (failed error) {
	for _, r := range results {
		failed = errors.Join(failed, r.Err)
	}
	return failed
}

func errsOf2(results []async.Result[int], err error) error { return errors.Join(err, errsOf(results)) }

// TestEverythingOnEveryExecutor settles, and nobody hangs.
func TestEverythingOnEveryExecutor(t *testing.T) {
	for name, executor := range executors {
		for what, primitive := range primitives {
			for _, limited := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", what, "/limited=", limited), func(t *testing.T) {
					inBubble(t, func(t *testing.T, ctx context.Context) {
						opts := []async.ScopeOption{async.On(executor.make()), async.Timeout(time.Hour)}
						if limited {
							opts = append(opts, async.Limit(2))
						}
						var given error
						err := async.Scope(ctx, func(ctx context.Context) error {
							given = primitive(ctx, func(ctx context.Context) (int, error) { return 1, async.Sleep(ctx, time.Second) })
							return nil
						}, opts...)
						err = errors.Join(err, given)
						var rejected *async.RejectedError
						switch {
						case err == nil:
						case executor.refuses && errors.As(err, &rejected):
						case executor.loses && errors.Is(err, context.DeadlineExceeded):
						default:
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// TestNothingRunsTwice counts the runs of tasks that each have their own number.
func TestNothingRunsTwice(t *testing.T) {
	for name, executor := range executors {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				const n = 30
				var runs [n]atomic.Int32
				var futures []*async.Future[int]
				_ = async.Scope(ctx, func(ctx context.Context) error {
					for i := range n {
						futures = append(futures, async.Execute(ctx, func(context.Context) (int, error) {
							time.Sleep(time.Second)
							return int(runs[i].Add(1)), nil
						}))
					}
					return nil
				}, async.On(executor.make()), async.Timeout(time.Hour))
				for i, f := range futures {
					_, err, ok := f.Result()
					require.True(t, ok)
					if err == nil {
						require.EqualValues(t, 1, runs[i].Load())
					} else {
						require.Zero(t, runs[i].Load(), "it was refused, or dropped and then cancelled: %v", err)
					}
				}
			})
		})
	}
}

func TestARefusedTaskSaysWhy(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		refuse := async.On(pool(func(func()) error { return errFull }))
		_, err := async.Execute(ctx, answer, refuse, async.Name("job")).Await(ctx, 0)
		var rejected *async.RejectedError
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "job", rejected.Task)
		require.Equal(t, errFull, rejected.Err)
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, nothing, refuse); return nil }), errFull)

		_, err = async.Execute(ctx, answer, async.On(pool(func(func()) error { plantedPanic(); return nil }))).Await(ctx, 0)
		require.ErrorAs(t, err, &rejected)
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAQueuedTaskOnAnExecutorIsSettledWhenCancelled, and does not run when its
// turn comes.
func TestAQueuedTaskOnAnExecutorIsSettledWhenCancelled(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var queue []func()
		queuing := async.On(pool(func(task func()) error { queue = append(queue, task); return nil }))
		hook := async.OnAbort(func(context.Context, error) error { t.Error("a hook ran"); return nil })
		f := async.Execute(ctx, panicking, queuing, hook)
		require.Equal(t, async.StateQueued, f.State())
		require.False(t, f.IsRunning())
		require.True(t, f.Cancel(errCancelBoom))
		_, err, ok := f.Result()
		require.True(t, ok, "at once")
		require.ErrorIs(t, err, errCancelBoom)

		f = async.Execute(ctx, panicking, queuing, hook)
		_, err = f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, async.StateDone, f.State())

		g := async.Execute(ctx, answer, queuing)
		for _, task := range queue {
			task()
		}
		v, err := g.Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 42, v)
	})
}

// TestStartingBlocksAsLongAsTheExecutor, but no longer than the task lives.
func TestStartingBlocksAsLongAsTheExecutor(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		on := async.On(oneSlot())
		first := async.Execute(ctx, sleeper(time.Second), on)
		require.Zero(t, time.Since(start))
		second := async.Execute(ctx, sleeper(time.Second), on)
		require.Equal(t, time.Second, time.Since(start))
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		third := async.Execute(short, sleeper(time.Second), on)
		require.Equal(t, 1100*time.Millisecond, time.Since(start))
		_, err := third.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1100*time.Millisecond, time.Since(start))
		for _, f := range []*async.Future[time.Duration]{first, second} {
			_, err := f.Wait(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			begin := time.Now()
			for range 5 {
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
			}
			require.Zero(t, time.Since(begin), "under a Limit it does not block")
			return nil
		}, on, async.Limit(2)))
	})
}

// TestWaitingInTheOnlyPlaceOfAPoolForThePool times out, as it was told to.
func TestWaitingInTheOnlyPlaceOfAPoolForThePool(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner error
		err := async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
				v, err := async.Execute(ctx, answer).Await(ctx, time.Second)
				inner = err
				return v, err
			}).Await(ctx, time.Minute)
			return err
		}, async.On(oneSlot()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, inner, context.DeadlineExceeded)
	})
}

// TestOnHoldsForAllThatIsStartedInside a scope, racers and items included, and
// for one task only.
func TestOnHoldsForAllThatIsStartedInside(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var n atomic.Int32
		counting := async.On(pool(func(task func()) error { n.Add(1); go task(); return nil }))
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Race(ctx, after(1, 1, nil), after(2, 1, nil)).Await(ctx, 0)
			require.NoError(t, err)
			require.EqualValues(t, 2, n.Load())
			_, err = async.ForkJoin(ctx, []int{1, 2, 3}, square).Await(ctx, 0)
			require.NoError(t, err)
			require.EqualValues(t, 5, n.Load())
			_, err = async.Execute(ctx, func(ctx context.Context) (int, error) {
				return async.Execute(ctx, answer).Await(ctx, 0) // in a task of the scope
			}).Await(ctx, 0)
			require.EqualValues(t, 7, n.Load())
			return err
		}, counting))
		_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			return async.Execute(ctx, answer).Await(ctx, 0)
		}, counting).Await(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 8, n.Load())
		_, err = async.ForkJoin(ctx, []int{1, 2, 3}, square, counting).Await(ctx, 0)
		require.NoError(t, err)
		require.EqualValues(t, 11, n.Load())
	})
}

// Pools of a few places. A task has its place until it has returned.
type seats chan struct{}

func (p seats) run(task func()) {
	go func() {
		defer func() { <-p }()
		task()
	}()
}

func (p seats) tryExecute(task func()) bool {
	select {
	case p <- struct{}{}:
		p.run(task)
		return true
	default:
		return false
	}
}

// blockingPool blocks until there is a place.
func blockingPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		p <- struct{}{}
		p.run(task)
		return nil
	})
}

// askedPool can say that it is full, but otherwise blocks.
func askedPool(n int) async.Executor {
	p := make(seats, n)
	return tryPool{func(task func()) error {
		p <- struct{}{}
		p.run(task)
		return nil
	}, p.tryExecute}
}

// fullPool refuses what it has no place for.
func fullPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		if !p.tryExecute(task) {
			return errFull
		}
		return nil
	})
}

// queueingPool has n goroutines and a queue.
func queueingPool(n int) async.Executor {
	p := make(seats, n)
	return pool(func(task func()) error {
		go func() {
			p <- struct{}{}
			p.run(task)
		}()
		return nil
	})
}

var smallPools = map[string]func(n int) async.Executor{
	"blocking": blockingPool, "asked": askedPool, "refusing": fullPool, "queueing": queueingPool,
}

// TestATaskKeepsItsPlaceOnTheExecutor between runs, and after a Goexit it is handed to
// the executor anew.
func TestATaskKeepsItsPlaceOnTheExecutor(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ex, asked := (&refusing{func(int32) bool { return false }}).executor()
				f, runs := failing(3, end)
				_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 4, runs.Load())
				want := int32(1)
				if how == "goexit" {
					want = 4
				}
				require.Equal(t, want, asked.Load())
			})
		})
	}
	t.Run("under a limit", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				for range 3 {
					f, _ := failing(3, runtime.Goexit)
					async.Go(ctx, f, everySecond, async.On(executorFunc(func(task func()) error { go task(); return nil })))
				}
				return nil
			}, async.Limit(1)))
		})
	})
}

// TestAnExecutorThatRefusesATaskEndsIt, at first and after a Goexit.
func TestAnExecutorThatRefusesATaskEndsIt(t *testing.T) {
	for name, from := range map[string]int32{"at first": 1, "after a Goexit": 3} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ex, asked := (&refusing{func(n int32) bool { return n >= from }}).executor()
				f, runs := failing(100, runtime.Goexit)
				_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
				require.ErrorAs(t, err, new(*async.RejectedError))
				require.ErrorIs(t, err, errRefused)
				require.Equal(t, from, asked.Load())
				require.Equal(t, from-1, runs.Load())
			})
		})
	}
}
