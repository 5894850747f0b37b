package async_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/stretchr/testify/require"
)

func TestQueuedTasksNeedNoGoroutine(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		blocker := async.Execute(ctx, stubborn(time.Second, 0, nil))
		before := runtime.NumGoroutine()
		for range 1000 {
			async.Go(ctx, nothing)
		}
		require.Less(t, goroutines(before+99)-before, 100)
		_, err := blocker.Await(ctx, 0)
		return err
	})
}

// errLimitWhy is the cause in the tests of queued tasks.
var errLimitWhy = errors.New("no longer needed")

func TestAQueuedTaskThatIsCancelledIsSettledAndNeverRuns(t *testing.T) {
	for name, test := range map[string]struct {
		cancel func(t *testing.T, ctx context.Context, f *async.Future[int], stop context.CancelCauseFunc)
		want   error
	}{
		"by Cancel": {func(t *testing.T, _ context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			require.True(t, f.Cancel(errLimitWhy))
		}, errLimitWhy},
		"by its derived context": {func(_ *testing.T, _ context.Context, _ *async.Future[int], stop context.CancelCauseFunc) {
			stop(errLimitWhy)
			synctest.Wait()
		}, errLimitWhy},
		"by the expiry of its Await": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by an Await that has expired": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			_, err := f.Await(ctx, -1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by AwaitAll": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			require.ErrorIs(t, async.AwaitAll(ctx, time.Second, f)[0].Err, context.DeadlineExceeded)
		}, context.DeadlineExceeded},
		"by the end of its waiter's context": {func(t *testing.T, ctx context.Context, f *async.Future[int], _ context.CancelCauseFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errLimitWhy)
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, errLimitWhy)
		}, errLimitWhy},
	} {
		t.Run(name, func(t *testing.T) {
			limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
				derived, stop := context.WithCancelCause(ctx)
				defer stop(nil)
				ran := false
				f := async.Execute(derived, func(context.Context) (int, error) { ran = true; return 1, nil },
					async.OnAbort(func(context.Context, error) error { ran = true; return nil }),
					async.OnDiscard(func(int) { ran = true }))
				require.Equal(t, async.StateQueued, f.State())
				start := time.Now()
				test.cancel(t, ctx, f, stop)
				require.Less(t, time.Since(start), time.Minute)
				require.Equal(t, async.StateDone, f.State(), "settled without waiting for a slot")
				_, err := f.Await(ctx, 0)
				require.ErrorIs(t, err, test.want)
				time.Sleep(2 * time.Hour)
				require.False(t, ran)
				return nil
			})
		})
	}
}

func TestQueuedTasksOfACancelledScopeAreSettledAndNeverRun(t *testing.T) {
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		cancel func(ctx context.Context, stop context.CancelCauseFunc) error // in the body, after everything was started
		match  []error
	}{
		"by its body":   {func(context.Context, context.CancelCauseFunc) error { return boom }, []error{boom}},
		"by the parent": {func(_ context.Context, stop context.CancelCauseFunc) error { stop(errLimitWhy); return nil }, []error{context.Canceled, errLimitWhy}},
		"by a sibling": {func(context.Context, context.CancelCauseFunc) error {
			time.Sleep(time.Hour) // the first task fails
			return nil
		}, []error{boom}},
		"by its timeout": {func(ctx context.Context, _ context.CancelCauseFunc) error { <-ctx.Done(); return nil }, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(asynctest.Context(t))
				defer stop(nil)
				ran := false
				run := func(context.Context) (int, error) { ran = true; return 1, nil }
				hook := async.OnAbort(func(context.Context, error) error { ran = true; return nil })
				var f, awaited *async.Future[int]
				err := async.Scope(parent, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error {
						time.Sleep(10 * time.Minute)
						if name == "by a sibling" {
							return boom
						}
						return nil
					})
					f = async.Execute(ctx, run, hook)
					awaited = async.Execute(ctx, run, hook)
					async.Go(ctx, func(context.Context) error { ran = true; return nil }, hook)
					go func() { _, _ = awaited.Wait(context.WithoutCancel(ctx)) }()
					return test.cancel(ctx, stop)
				}, async.Limit(1), async.Timeout(5*time.Minute+time.Hour*map[bool]time.Duration{true: 0, false: 1}[name == "by its timeout"]))
				require.Error(t, err, "something was skipped")
				for _, want := range test.match {
					require.ErrorIs(t, err, want)
					for _, f := range []*async.Future[int]{f, awaited} {
						_, ferr, ok := f.Result()
						require.True(t, ok)
						require.ErrorIs(t, ferr, want)
					}
				}
				require.False(t, ran)
			})
		})
	}
}

// TestACancelledScopeThatSkippedAQueuedTaskDoesNotReturnNil: nothing but the
// skipped task tells of the cancellation.
func TestACancelledScopeThatSkippedAQueuedTaskDoesNotReturnNil(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context){
		"Go":      func(ctx context.Context) { async.Go(ctx, nothing) },
		"Execute": func(ctx context.Context) { async.Execute(ctx, answer) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(asynctest.Context(t))
				err := async.Scope(parent, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
					start(ctx)
					stop(errLimitWhy)
					return nil
				}, async.Limit(1))
				require.ErrorIs(t, err, errLimitWhy)
				require.ErrorIs(t, err, context.Canceled)
			})
		})
	}
}

func TestALateStartInACancelledLimitedScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancelCause(asynctest.Context(t))
		products := make(chan int)
		queuedRan := false
		err := async.Scope(parent, func(ctx context.Context) error {
			stop(errLimitWhy)
			synctest.Wait()
			// A slot is free, so it does not queue: a producer is never skipped.
			async.Go(ctx, func(ctx context.Context) error {
				defer close(products)
				require.ErrorIs(t, context.Cause(ctx), errLimitWhy)
				time.Sleep(time.Minute)
				return nil
			})
			f := async.Execute(ctx, func(context.Context) (int, error) { queuedRan = true; return 0, nil },
				async.OnAbort(func(context.Context, error) error { queuedRan = true; return nil }))
			_, err, settled := f.Result()
			require.True(t, settled, "it would queue, so it is settled")
			require.ErrorIs(t, err, errLimitWhy)
			<-products
			return nil
		}, async.Limit(1))
		require.ErrorIs(t, err, errLimitWhy)
		require.False(t, queuedRan)
	})
}

func TestCancellingQueuedTasksFreesNothingThatIsNotTheirs(t *testing.T) {
	limitedScope(t, 2, func(t *testing.T, ctx context.Context) error {
		var c runCount
		work := func(context.Context) (int, error) {
			c.enter()
			defer c.out()
			time.Sleep(time.Second)
			return 1, nil
		}
		var all []*async.Future[int]
		for range 50 {
			all = append(all, async.Execute(ctx, work))
		}
		for i := 3; i < len(all); i += 3 {
			all[i].Cancel(errLimitWhy)
		}
		for i, r := range async.AwaitAll(ctx, 0, all...) {
			if i >= 3 && i%3 == 0 {
				require.ErrorIs(t, r.Err, errLimitWhy)
			} else {
				require.NoError(t, r.Err)
			}
		}
		require.EqualValues(t, 2, c.most.Load())
		require.EqualValues(t, 50-16, c.entered.Load())
		return nil
	})
}

func TestQueuedTasksStartDeepestFirstThenFirstComeFirst(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		var mu sync.Mutex
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return nil
			}
		}
		queued := make(chan struct{})
		async.Go(ctx, func(ctx context.Context) error {
			async.Go(ctx, note("child 1"))
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, note("in scope 1"))
				<-queued // a wait of our own: no slot is lent
				async.Go(ctx, note("in scope 2"))
				return nil
			})
			async.Go(ctx, note("child 3"))
			return err
		})
		async.Go(ctx, note("top 1"))
		async.Start(ctx, note("top 2"))
		synctest.Wait()
		async.Go(ctx, note("top 3"))
		close(queued)
		async.OnExit(ctx, func(context.Context, error) error {
			require.Equal(t, []string{"in scope 1", "in scope 2", "child 1", "child 3", "top 1", "top 2", "top 3"}, order)
			return nil
		})
		return nil
	})
}

func TestTheTimeoutOfATaskDoesNotRunWhileItQueues(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		start := time.Now()
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); return nil })
		f := async.Execute(ctx, func(ctx context.Context) (int, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Hour+time.Minute), deadline)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, async.Timeout(time.Minute))
		_, err := f.Await(ctx, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Hour+time.Minute, start)
		return nil
	})
}

func TestTheLimitOfAnAwaitRunsWhileItsTaskQueues(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		start := time.Now()
		async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
		f := async.Execute(ctx, obedient(time.Hour, 1, nil))
		_, err := f.Await(ctx, 2*time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, 2*time.Minute, start)
		_, err = f.Await(ctx, 0)
		return err
	})
}

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
