package locks_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func held(t *testing.T, w *world, key string, options ...locks.LockOption) (free func()) {
	t.Helper()
	h, err := w.other.Acquire(t.Context(), key, options...)
	require.NoError(t, err)
	return func() { require.NoError(t, h.Release(t.Context())) }
}

func TestThoseWhoWaitAreGrantedTheLockInOrder(t *testing.T) {
	for _, hints := range []bool{true, false} {
		in(t, func(t *testing.T, w *world) {
			w.store.Mute(!hints)
			free := held(t, w, "k")
			var order []int
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				for i := range 100 {
					async.Go(ctx, func(ctx context.Context) error {
						return w.m.With(ctx, "k", func(context.Context) error {
							order = append(order, i)
							return nil
						})
					})
					synctest.Wait()
				}
				free()
				return nil
			}))
			assert.True(t, slices.IsSorted(order), "%v", order)
			assert.Len(t, order, 100)
		})
	}
}

func TestTwoProcessesShareTheQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var order []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 20 {
				m := []*locks.Manager{w.m, w.other}[i%2]
				async.Go(ctx, func(ctx context.Context) error {
					return m.With(ctx, "k", func(context.Context) error {
						order = append(order, i)
						return nil
					})
				})
				synctest.Wait()
			}
			free()
			return nil
		}))
		assert.True(t, slices.IsSorted(order), "%v", order)
	})
}

func TestAWaiterThatDiesHoldsNobodyUpForLong(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		dead := locks.Request{ID: "dead", Version: "v", Owner: "dead", Kind: locks.Mutex, Lease: leaseTime, Wait: true}
		_, err := w.store.Store.Acquire(t.Context(), locks.Name{Tenant: "default", Key: "k"}, []locks.Request{dead})
		require.NoError(t, err)
		begin := time.Now()
		free()
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
		assert.LessOrEqual(t, time.Since(begin), locks.WaiterLife+1200*time.Millisecond)
	})
}

func TestAClosedManagerGrantsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		mine, err := w.m.Acquire(t.Context(), "mine")
		require.NoError(t, err)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				assert.ErrorIs(t, w.m.With(ctx, "k", nothing), locks.ErrClosed)
				return nil
			})
			synctest.Wait()
			require.NoError(t, w.m.Close())
			require.NoError(t, w.m.Close())
			return nil
		}))
		require.ErrorIs(t, w.m.With(t.Context(), "k2", nothing), locks.ErrClosed)
		_, err = w.m.TryWith(t.Context(), "k2", nothing)
		require.ErrorIs(t, err, locks.ErrClosed)
		time.Sleep(time.Hour)
		require.NoError(t, mine.Err(), "what is held stays held")
		require.NoError(t, mine.Release(t.Context()))
		free()
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Zero(t, r.Waiters)
	})
}

func TestAThousandWaitersOfAKeyAreServedInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var order []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 1000 {
				async.Go(ctx, func(ctx context.Context) error {
					return w.m.With(ctx, "k", func(ctx context.Context) error {
						order = append(order, i)
						return async.Sleep(ctx, 10*time.Millisecond)
					})
				})
				synctest.Wait()
			}
			free()
			return nil
		}))
		assert.True(t, slices.IsSorted(order))
		assert.Len(t, order, 1000)
	})
}

func TestNobodyIsForgotten(t *testing.T) {
	// Many come and go at random, of several processes, some of them without hints: at the
	// end the lock is free, and everybody who waited long enough had it.
	in(t, func(t *testing.T, w *world) {
		var ms []*locks.Manager
		for i := range 4 {
			s := lockstest.NewFaulty(w.store.Store)
			s.Mute(i%2 == 1)
			ms = append(ms, w.manager(s))
		}
		var mu sync.Mutex
		inside, done := 0, 0
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 200 {
				async.Go(ctx, func(ctx context.Context) error {
					require.NoError(t, async.Sleep(ctx, time.Duration(i*37%100)*time.Millisecond))
					var options []locks.LockOption
					if i%5 == 0 {
						options = append(options, locks.Wait(time.Duration(i)*time.Millisecond))
					}
					err := ms[i%4].WithPermit(ctx, "k", 3, func(ctx context.Context) error {
						mu.Lock()
						inside++
						assert.LessOrEqual(t, inside, 3)
						mu.Unlock()
						err := async.Sleep(ctx, 5*time.Millisecond)
						mu.Lock()
						inside--
						done++
						mu.Unlock()
						return err
					}, options...)
					if i%5 != 0 {
						return err
					}
					return nil
				})
			}
			return nil
		}))
		assert.GreaterOrEqual(t, done, 160)
		w.mustFree("k", locks.Permit(3))
	})
}

func TestATaskThatWaitsForALockLendsItsSlotOfALimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error {
					return w.m.With(ctx, "k", func(ctx context.Context) error {
						if err := async.Sleep(ctx, time.Second); err != nil { // another task takes the slot
							return err
						}
						async.Go(ctx, func(context.Context) error { return nil }) // and this one needs it
						return nil
					})
				})
			}
			return nil
		}, async.Limit(1)))
	})
}
