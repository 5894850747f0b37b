package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestAwaitReturnsOnTimeThoughTheHandlerIgnoresItsContext(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		f := async.Execute(ctx, stubborn(time.Hour, 1, nil))
		v, err := f.Await(ctx, time.Second)
		tookAbout(t, time.Second, start)
		require.Zero(t, v)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		v, err = f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, v, "a later wait is given the real outcome")
		tookAbout(t, time.Hour, start)
	})
}

func TestATieBetweenResultAndDeadlineIsTheResult(t *testing.T) {
	for range 100 {
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) { return f.Await(ctx, time.Second) })
		awaitTie(t, func(ctx context.Context, f *async.Future[int]) (int, error) {
			r := async.AwaitAll(ctx, time.Second, f)
			return r[0].Value, r[0].Err
		})
	}
}

func awaitTie(t *testing.T, await func(ctx context.Context, f *async.Future[int]) (int, error)) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		v, err := await(ctx, async.Execute(ctx, stubborn(time.Second, 7, nil)))
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// TestASettledResultBeatsAContextThatIsCancelledAfterIt: who cancels has seen
// the future settled, so a wait that is parked meanwhile must not tell the
// cancellation.
func TestASettledResultBeatsAContextThatIsCancelledAfterIt(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		f := async.Execute(root, func(context.Context) (int, error) {
			runtime.Gosched()
			return 7, nil
		})
		ctx, cancel := context.WithCancel(root)
		go func() {
			<-f.Done()
			cancel()
		}()
		wait := f.Wait
		if i%2 == 0 {
			wait = func(ctx context.Context) (int, error) { return f.Await(ctx, 0) }
		}
		v, err := wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 7, v)
	}
}

func TestASettledResultBeatsADoneContext(t *testing.T) {
	root := asynctest.Context(t)
	done, cancel := context.WithCancelCause(root)
	cancel(errors.New("too late"))
	own := errors.New("own")
	for range 1000 {
		for _, f := range []*async.Future[int]{
			async.Completed(7, own),
			async.Execute(root, func(context.Context) (int, error) { return 7, own }),
		} {
			<-f.Done()
			for _, timeout := range []time.Duration{-1, 0, 1, time.Hour} {
				v, err := f.Await(done, timeout)
				require.Equal(t, 7, v)
				require.Equal(t, own, err)
				r := async.AwaitAll(done, timeout, f)
				require.Equal(t, []async.Result[int]{{Index: 0, Value: 7, Err: own}}, r)
			}
			v, err := f.Wait(done)
			require.Equal(t, 7, v)
			require.Equal(t, own, err)
		}
	}
}

func TestAwaitTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, handler time.Duration
		took             time.Duration
		expires          bool
	}{
		"zero sets no limit":                     {0, 1000 * time.Hour, 1000 * time.Hour, false},
		"a limit that is not reached":            {time.Hour, time.Second, time.Second, false},
		"a limit that passes":                    {time.Second, time.Hour, time.Second, true},
		"the shortest":                           {1, time.Hour, 1, true},
		"negative has expired, looks and aborts": {-1, time.Hour, 0, true},
		"very negative":                          {-1 << 63, time.Hour, 0, true},
		"the longest":                            {1<<63 - 1, time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				cause := make(chan error, 1)
				f := async.Execute(ctx, stubborn(test.handler, 7, nil), async.OnAbort(func(_ context.Context, why error) error {
					cause <- why
					return nil
				}))
				synctest.Wait() // the handler runs: its hook is due at an abort
				v, err := f.Await(ctx, test.timeout)
				tookAbout(t, test.took, start)
				if !test.expires {
					require.NoError(t, err)
					require.Equal(t, 7, v)
					return
				}
				require.Zero(t, v)
				var te *async.TimeoutError
				require.ErrorAs(t, err, &te)
				require.Equal(t, test.timeout, te.Limit)
				require.Same(t, te, <-cause, "it aborted")
				v, err = f.Await(ctx, 0)
				require.NoError(t, err)
				require.Equal(t, 7, v)
			})
		})
	}
}

func TestAnExpiredAwaitWaitsForGrace(t *testing.T) {
	own := &awaitError{4}
	for name, test := range map[string]struct {
		grace   time.Duration
		handler func(context.Context) (int, error)
		took    time.Duration
		check   func(t *testing.T, v int, err, cause error)
	}{
		"a value within it wins": {2 * time.Second, obedient(time.Second, 7, nil), 2 * time.Second, func(t *testing.T, v int, err, _ error) {
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}},
		"an error within it wins, with the cause": {2 * time.Second, obedient(time.Second, 0, error(own)), 2 * time.Second, func(t *testing.T, _ int, err, cause error) {
			var mine *awaitError
			require.ErrorAs(t, err, &mine)
			require.ErrorIs(t, err, cause)
		}},
		"beyond it is too late": {2 * time.Second, obedient(3*time.Second, 7, nil), 3 * time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"none by default": {0, obedient(0, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
		"negative is none": {-time.Second, obedient(time.Second, 7, nil), time.Second, func(t *testing.T, v int, err, cause error) {
			require.Zero(t, v)
			require.True(t, err == cause, "%v", err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				var cause error
				f := async.Execute(ctx, func(ctx context.Context) (int, error) {
					v, err := test.handler(ctx)
					return v, err
				}, async.Grace(test.grace), async.OnAbort(func(_ context.Context, why error) error {
					cause = why
					return nil
				}))
				v, err := f.Await(ctx, time.Second)
				tookAbout(t, test.took, start)
				synctest.Wait()
				test.check(t, v, err, cause)
				_, _ = f.Wait(ctx)
			})
		})
	}
}

func TestGraceAlsoHoldsWhenTheContextEnds(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f := async.Execute(ctx, obedient(time.Second, 7, nil), async.Grace(2*time.Second))
		v, err := f.Await(brief, 0)
		require.NoError(t, err)
		require.Equal(t, 7, v)
		tookAbout(t, 2*time.Second, start)
	})
}

func TestGracesOfAwaitAllRunSideBySide(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		all := []*async.Future[int]{
			async.Execute(ctx, obedient(3*time.Second, 0, nil), async.Grace(4*time.Second)),
			async.Execute(ctx, obedient(5*time.Second, 1, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(1*time.Second, 2, nil), async.Grace(2*time.Second)),
			async.Execute(ctx, obedient(4*time.Second, 3, nil), async.Grace(3*time.Second)),
			async.Execute(ctx, stubborn(time.Hour, 4, nil)),
		}
		got := async.AwaitAll(ctx, 10*time.Second, all...)
		tookAbout(t, 13*time.Second, start)
		for i, within := range []bool{true, false, true, false, false} {
			require.Equal(t, i, got[i].Index)
			if within {
				require.NoError(t, got[i].Err)
				require.Equal(t, i, got[i].Value)
			} else {
				require.ErrorIs(t, got[i].Err, context.DeadlineExceeded)
			}
		}
		async.AwaitAll(ctx, 0, all...)
	})
}

func TestAwaitAllReturnsOutcomesInTheOrderOfItsArguments(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		own := errors.New("own")
		var all []*async.Future[int]
		for i := range 10 {
			var err error
			if i%3 == 0 {
				err = own
			}
			all = append(all, async.Execute(ctx, stubborn(time.Duration(10-i)*time.Second, i, err)))
		}
		all = append(all, async.Completed(10, nil), all[4])
		start := time.Now()
		got := async.AwaitAll(ctx, time.Hour, all...)
		tookAbout(t, 10*time.Second, start)
		require.Len(t, got, 12)
		for i, r := range got {
			require.Equal(t, i, r.Index)
			if i == 11 {
				i = 4
			}
			require.Equal(t, i, r.Value)
			require.Equal(t, i < 10 && i%3 == 0, r.Err == own)
		}
	})
}

func TestAwaitAllOfNothing(t *testing.T) {
	require.Empty(t, async.AwaitAll[int](asynctest.Context(t), -1))
}

func TestAwaitAllHasOneLimitAndAbortsAllAtOnce(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		aborted := map[string]time.Duration{}
		causes := map[string]error{}
		start := time.Now()
		task := func(name string, d time.Duration) *async.Future[int] {
			return async.Execute(ctx, stubborn(d, 7, nil), async.Name(name), async.OnAbort(func(_ context.Context, why error) error {
				mu.Lock()
				defer mu.Unlock()
				aborted[name], causes[name] = time.Since(start).Truncate(time.Microsecond), why
				return nil
			}))
		}
		quick := task("quick", 4*time.Second)
		slow := task("slow", time.Hour)
		middling := task("middling", 8*time.Second)
		slower := task("slower", 2*time.Hour)
		got := async.AwaitAll(ctx, 10*time.Second, quick, slow, middling, slower)
		tookAbout(t, 10*time.Second, start)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, map[string]time.Duration{"slow": 10 * time.Second, "slower": 10 * time.Second}, aborted)
		for i, name := range []string{"quick", "slow", "middling", "slower"} {
			if causes[name] == nil {
				require.NoError(t, got[i].Err)
				require.Equal(t, 7, got[i].Value, "a settled result wins")
				continue
			}
			require.Zero(t, got[i].Value)
			require.True(t, got[i].Err == causes[name], "each task's cause is what is told of it")
			var te *async.TimeoutError
			require.ErrorAs(t, got[i].Err, &te)
			require.Contains(t, te.Task, name)
			require.Equal(t, 10*time.Second, te.Limit, "the limit is that of the call")
			require.InDelta(t, 10*time.Second, te.Waited, float64(time.Microsecond))
		}
		for _, r := range async.AwaitAll(ctx, 0, slow, slower) {
			require.NoError(t, r.Err)
			require.Equal(t, 7, r.Value)
		}
	})
}

func TestATieOfManyResultsAndTheLimitOfAwaitAllIsTheResults(t *testing.T) {
	for range fewer(300, 30) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				var fs []*async.Future[int]
				for range 4 {
					fs = append(fs, async.Execute(ctx, stubborn(time.Second, 1, nil)))
				}
				for _, r := range async.AwaitAll(ctx, time.Second, fs...) {
					require.NoError(t, r.Err)
				}
				return nil
			}))
		})
	}
}

func TestAwaitAllAbortsAllWhenItsContextEnds(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		t.Run(timeout.String(), func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				why := errors.New("enough")
				start := time.Now()
				limited, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(2*time.Second, func() { cancel(why) })
				causes := make([]error, 3)
				var all []*async.Future[int]
				for i := range 3 {
					all = append(all, async.Execute(ctx, func(ctx context.Context) (int, error) {
						if i == 0 {
							time.Sleep(time.Second)
							return 7, nil
						}
						untilStopped(ctx)
						causes[i] = context.Cause(ctx)
						return 0, nil
					}))
				}
				got := async.AwaitAll(limited, timeout, all...)
				tookAbout(t, 2*time.Second, start)
				require.Equal(t, async.Result[int]{Index: 0, Value: 7}, got[0])
				for i := 1; i < 3; i++ {
					require.ErrorIs(t, got[i].Err, context.Canceled)
					require.ErrorIs(t, got[i].Err, why)
					<-all[i].Done()
					require.Equal(t, why, causes[i])
				}
			})
		})
	}
}

func TestAnAwaitAllLeavesTheTimeoutOfItsScopeAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var cause, hookCause error
		require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
			f := async.Execute(outer, obedient(0, 0, context.Canceled), async.OnAbort(func(_ context.Context, c error) error { hookCause = c; return nil }))
			_ = async.Scope(outer, func(ctx context.Context) error {
				r := async.AwaitAll(ctx, 0, f)
				cause = context.Cause(ctx)
				require.ErrorIs(t, r[0].Err, cause)
				return nil
			}, async.Timeout(time.Second))
			return nil
		}))
		var expired *async.TimeoutError
		require.ErrorAs(t, cause, &expired)
		require.Equal(t, time.Second, expired.Limit)
		require.Same(t, cause, hookCause)
	})
}

func TestANegativeAwaitAllLooksOnceAndAborts(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		got := async.AwaitAll(ctx, -1, async.Execute(ctx, obedient(0, 1, nil)), async.Completed(2, nil), async.Execute(ctx, obedient(0, 3, nil)))
		tookAbout(t, 0, start)
		require.ErrorIs(t, got[0].Err, context.DeadlineExceeded)
		require.NoError(t, got[1].Err)
		require.ErrorIs(t, got[2].Err, context.DeadlineExceeded)
	})
}

// TestAwaitAllsThatATimeoutEndsTogetherShareNothing is for the race detector.
func TestAwaitAllsThatATimeoutEndsTogetherShareNothing(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(outer context.Context) error {
				return async.Scope(outer, func(ctx context.Context) error {
					for range 4 {
						f := async.Execute(outer, obedient(0, 0, nil))
						async.Go(ctx, func(ctx context.Context) error { return async.AwaitAll(ctx, time.Minute, f)[0].Err })
					}
					return nil
				}, async.Timeout(time.Second))
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// TestAwaitAllWaitsForAPromiseItHasNotComeTo: who is abandoned while it is at
// an earlier one has a waiter.
func TestAwaitAllWaitsForAPromiseItHasNotComeTo(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, slow, f *async.Future[int]){
		"Await":    func(ctx context.Context, _, f *async.Future[int]) { _, _ = f.Await(ctx, 0) },
		"AwaitAll": func(ctx context.Context, slow, f *async.Future[int]) { async.AwaitAll(ctx, 0, slow, f) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
					slow := async.Execute(outer, stubborn(time.Hour, 1, nil))
					require.ErrorIs(t, async.Scope(outer, func(ctx context.Context) error {
						f, _ := async.NewPromise[int](ctx)
						async.Go(outer, func(ctx context.Context) error { wait(ctx, slow, f); return nil })
						synctest.Wait()
						return nil
					}), async.ErrAbandoned)
					return nil
				}))
			})
		})
	}
}

func TestAFailureThatAwaitAllHasNotComeToIsToldToItAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(outer context.Context) error {
			slow := async.Execute(outer, stubborn(time.Hour, 1, nil))
			var all *async.Future[[]async.Result[int]]
			require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
				f := async.Execute(ctx, stubborn(time.Second, 0, errPlanted))
				all = async.Execute(outer, func(ctx context.Context) ([]async.Result[int], error) { return async.AwaitAll(ctx, 0, slow, f), nil })
				synctest.Wait()
				return nil
			}))
			r, err := all.Await(outer, 0)
			require.Equal(t, errPlanted, r[1].Err)
			return err
		}))
	})
}

// Two await the same task: the one with the shorter limit aborts it for
// both. The other is told that it was not its own limit.
func TestItIsSaidWhoseLimitAbortedATask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, joinUntilDone, async.Name("fetch"))
			async.Start(ctx, func(ctx context.Context) error {
				_, err := f.Await(ctx, 20*time.Millisecond)
				require.EqualError(t, err, "async: fetch: context deadline exceeded (limit 20ms of an Await, waited 20ms)")
				return nil
			})
			_, err := f.Await(ctx, time.Second)
			require.ErrorContains(t, err, "limit 20ms of an Await")
			return nil
		})
		err := async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Start(ctx, joinUntilDone, async.Name("fetch"), async.Timeout(time.Second)).Join(ctx)
			return err
		})
		require.ErrorContains(t, err, "(limit 1s, waited 1s)")
	})
}
