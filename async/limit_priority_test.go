package async_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestTheMoreUrgentOfOneDepthStartFirst: and equals as they came.
func TestTheMoreUrgentOfOneDepthStartFirst(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f func(context.Context) error, n int){
		"Go": func(ctx context.Context, f func(context.Context) error, n int) { async.Go(ctx, f, async.Priority(n)) },
		"Execute": func(ctx context.Context, f func(context.Context) error, n int) {
			async.Start(ctx, f, async.Priority(n))
		},
		"a derived context": func(ctx context.Context, f func(context.Context) error, n int) {
			async.Go(context.WithValue(ctx, cycleKey{}, n), f, async.Priority(n))
		},
		"Repeat": func(ctx context.Context, f func(context.Context) error, n int) {
			async.Repeat(ctx, async.Every(time.Second), f, async.Attempts(1), async.Priority(n))
		},
		"the last of several": func(ctx context.Context, f func(context.Context) error, n int) {
			async.Go(ctx, f, async.Priority(-n), async.Priority(n))
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				var order []int // one runs at a time: no lock needed
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
				for _, n := range []int{0, math.MinInt, 1, -1, math.MaxInt, 1, 0, math.MinInt + 1, math.MaxInt - 1} {
					start(ctx, func(context.Context) error { order = append(order, n); return nil }, n)
				}
				async.OnExit(ctx, func(context.Context, error) error {
					require.Equal(t, []int{math.MaxInt, math.MaxInt - 1, 1, 1, 0, 0, -1, math.MinInt + 1, math.MinInt}, order)
					return nil
				})
				return nil
			})
		})
	}
}

func TestWhatATaskStartsInheritsItsPriority(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error { order = append(order, name); return nil }
		}
		// All that is noted is of one depth: in a scope of a task of ctx.
		parent := func(name string, options ...async.TaskOption) {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, note(name))
				async.Go(ctx, note(name+" low"), async.Priority(-2))
				async.Go(ctx, note(name+" none"), async.Priority(0))
				return nil
			}, options...)
		}
		gate := async.Start(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
		parent("plain")
		parent("urgent", async.Priority(3))
		parent("later", async.Priority(-3))
		async.OnExit(ctx, func(context.Context, error) error {
			require.Equal(t, []string{
				"urgent", "urgent none", "urgent low", // deeper than the parents that queue
				"plain", "plain none", "plain low",
				"later none", "later low", "later",
			}, order)
			return nil
		})
		return second(gate.Wait(ctx))
	})
}

// TestPriorityIsInheritedThroughEverythingThatOwnsTasks: at the innermost depth
// the tasks of several ways queue for a limit of their own.
func TestPriorityIsInheritedThroughEverythingThatOwnsTasks(t *testing.T) {
	ways := map[string]func(ctx context.Context, f func(context.Context) error) error{
		"a scope": func(ctx context.Context, f func(context.Context) error) error { return async.Scope(ctx, f) },
		"a shield": func(ctx context.Context, f func(context.Context) error) error {
			return async.Shield(ctx, time.Hour, f)
		},
		"a contender": func(ctx context.Context, f func(context.Context) error) error {
			return second(async.Race(ctx, func(ctx context.Context) (int, error) { return 1, f(ctx) }).Wait(ctx))
		},
		"an item": func(ctx context.Context, f func(context.Context) error) error {
			return errsOf2(async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return 1, f(ctx) }).Wait(ctx))
		},
		"an item of a sequence": func(ctx context.Context, f func(context.Context) error) error {
			return async.ForEach(ctx, func(yield func(int) bool) { yield(1) }, func(ctx context.Context, _ int) error { return f(ctx) })
		},
		"a task": func(ctx context.Context, f func(context.Context) error) error {
			return second(async.Start(ctx, f).Wait(ctx))
		},
		"a poll": func(ctx context.Context, f func(context.Context) error) error {
			return second(async.Repeat(ctx, async.Every(time.Second), f, async.Attempts(1)).Wait(ctx))
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var order []string
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						return way(ctx, func(ctx context.Context) error {
							return async.Scope(ctx, func(ctx context.Context) error {
								async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
								for _, p := range []struct {
									name    string
									options []async.TaskOption
								}{{"six", []async.TaskOption{async.Priority(6)}}, {"inherited", nil}, {"eight", []async.TaskOption{async.Priority(8)}}} {
									async.Go(ctx, func(context.Context) error { order = append(order, p.name); return nil }, p.options...)
								}
								return nil
							}, async.Limit(1))
						})
					}, async.Priority(7))
					return nil
				}))
				require.Equal(t, []string{"eight", "inherited", "six"}, order)
			})
		})
	}
}

func TestDepthAndWaitsGoBeforePriority(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error { order = append(order, name); return nil }
		}
		async.Go(ctx, func(own context.Context) error {
			async.Go(ctx, note("urgent"), async.Priority(math.MaxInt))
			async.Go(own, note("deeper"), async.Priority(math.MinInt))
			err := async.Sleep(own, time.Second)
			_ = note("waited")(nil)
			return err
		}, async.Priority(math.MinInt))
		synctest.Wait()
		async.OnExit(ctx, func(context.Context, error) error {
			require.Equal(t, []string{"deeper", "urgent", "waited"}, order)
			return nil
		})
		return nil
	})
}

func TestADetachedTaskInheritsNoPriority(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []string
		done := make(chan struct{})
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Detach(ctx, "detached", func(ctx context.Context) error {
					defer close(done)
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
						async.Go(ctx, func(context.Context) error { order = append(order, "its own"); return nil })
						async.Go(ctx, func(context.Context) error { order = append(order, "one"); return nil }, async.Priority(1))
						return nil
					}, async.Limit(1))
				})
				return nil
			}, async.Priority(9))
			return nil
		}))
		<-done
		require.Equal(t, []string{"one", "its own"}, order)
	})
}
