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
