package async_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

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
