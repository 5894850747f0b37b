package locks_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestASemaphoreHasAsManyHoldersAsItsSizeEachWithASlot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var inside, most atomic.Int32
		slots := make(chan int, 100)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 50 {
				async.Go(ctx, func(ctx context.Context) error {
					return w.m.WithPermit(ctx, "pool", 10, func(ctx context.Context) error {
						n := inside.Add(1)
						defer inside.Add(-1)
						most.Store(max(most.Load(), n))
						slots <- locks.From(ctx).Slot()
						return async.Sleep(ctx, time.Second)
					})
				})
			}
			return nil
		}))
		assert.EqualValues(t, 10, most.Load())
		close(slots)
		for s := range slots {
			assert.Less(t, s, 10)
		}
	})
}

func TestARequestForManyPermitsIsNotStarvedByOnesForFew(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "pool", locks.Permit(10))
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			var many atomic.Bool
			async.Go(ctx, func(ctx context.Context) error {
				return w.m.WithPermits(ctx, "pool", 10, 10, func(context.Context) error { many.Store(true); return nil })
			})
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error {
				return w.m.WithPermit(ctx, "pool", 10, func(context.Context) error { assert.True(t, many.Load()); return nil })
			})
			synctest.Wait()
			require.NoError(t, w.m.WithPermit(ctx, "pool", 10, func(context.Context) error {
				assert.False(t, many.Load(), "one that is not fair may pass")
				return nil
			}, locks.Fair(false)))
			free()
			return nil
		}))
	})
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.WithRead(t.Context(), "rw", func(context.Context) error {
			assert.True(t, w.free("rw", locks.Read()))
			assert.False(t, w.free("rw", locks.Write()))
			return nil
		}))
		require.NoError(t, w.m.WithWrite(t.Context(), "rw", func(context.Context) error {
			assert.False(t, w.free("rw", locks.Read()))
			assert.False(t, w.free("rw", locks.Write()))
			return nil
		}))
	})
}

func TestAnotherKindIsAConflictAndAnotherSizeIfThatIsStrict(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.WithPermit(t.Context(), "pool", 10, nothing))
		require.ErrorIs(t, w.m.WithPermit(t.Context(), "pool", 9, nothing, locks.Strict()), locks.ErrConflict)
		require.ErrorIs(t, w.m.With(t.Context(), "pool", nothing), locks.ErrConflict)
		require.ErrorIs(t, w.m.WithRead(t.Context(), "pool", nothing), locks.ErrConflict)
		require.NoError(t, w.m.WithPermit(t.Context(), "pool", 9, nothing, locks.Resize()))
		assert.Empty(t, w.store.Calls(lockstest.Release)[2:], "a refused request leaves nothing to withdraw")
	})
}

func TestAWaiterForMoreThanASemaphoreHasNowIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "pool", locks.Permit(10))
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				assert.ErrorIs(t, w.m.WithPermits(ctx, "pool", 10, 10, nothing), locks.ErrConflict)
				return nil
			})
			synctest.Wait()
			_, err := w.other.CreateSemaphore(ctx, "pool", 5)
			return err
		}))
		free()
	})
}

func TestWithAllHoldsEveryKeyWhateverTheirOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var both atomic.Int32
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 40 {
				keys := []string{"a", "b", "c", "b"}
				if i%2 == 1 {
					keys = []string{"c", "b", "a"}
				}
				m := []*locks.Manager{w.m, w.other}[i/2%2]
				async.Go(ctx, func(ctx context.Context) error {
					return m.WithAll(ctx, keys, func(ctx context.Context) error {
						assert.EqualValues(t, 1, both.Add(1))
						defer both.Add(-1)
						for _, key := range keys {
							assert.Equal(t, key, locks.FromKey(ctx, key).Key())
							assert.NoError(t, locks.FromKey(ctx, key).Err())
						}
						return async.Sleep(ctx, 10*time.Second)
					})
				})
			}
			return nil
		}))
		for _, key := range []string{"a", "b", "c"} {
			w.mustFree(key)
		}
		releases := w.store.Calls(lockstest.Release)
		assert.Equal(t, "c", releases[0].Name.Key, "in reverse")
		assert.Equal(t, "a", releases[2].Name.Key)
	})
}

func TestTheLossOfOneOfAllCancelsTheBodyAndTheWait(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		err := w.m.WithAll(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
			h := locks.FromKey(ctx, "a")
			require.NoError(t, w.other.ReleaseVersion(ctx, "a", h.Version()))
			<-ctx.Done()
			return nil
		})
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, "a", lost.Key)
		w.mustFree("b")

		free := held(t, w, "b")
		time.AfterFunc(time.Second, func() {
			r, err := w.other.Get(t.Context(), "a")
			assert.NoError(t, err)
			assert.NoError(t, w.other.ReleaseVersion(t.Context(), "a", r.Version))
		})
		err = w.m.WithAll(t.Context(), []string{"a", "b"}, nothing)
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, "a", lost.Key)
		free()
		w.mustFree("b")
	})
}

func TestWithAllThatCannotHaveOneGivesTheOthersBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "b")
		begin := time.Now()
		err := w.m.WithAll(t.Context(), []string{"a", "b", "c"}, nothing, locks.Wait(3*leaseTime))
		assert.Equal(t, 3*leaseTime, time.Since(begin), "one wait for all; what is held is renewed")
		require.ErrorIs(t, err, locks.ErrNotGranted)
		w.mustFree("a")
		require.ErrorIs(t, w.m.WithAll(t.Context(), []string{"a", "b"}, nothing, locks.NoWait()), locks.ErrNotGranted)
		w.mustFree("a")
		free()
	})
}

func TestAReadLockUnderAReadLockMustSayReentrant(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		again := []locks.LockOption{locks.Reentrant()}
		require.NoError(t, w.m.WithRead(t.Context(), "rw", func(ctx context.Context) error {
			assert.ErrorIs(t, w.m.WithRead(ctx, "rw", nothing), locks.ErrReentrant)
			assert.NoError(t, w.m.WithRead(ctx, "rw", nothing, again...))
			assert.ErrorIs(t, w.m.WithWrite(ctx, "rw", nothing, again...), locks.ErrReentrant, "read to write")
			return nil
		}))
		require.NoError(t, w.m.WithWrite(t.Context(), "rw", func(ctx context.Context) error {
			assert.NoError(t, w.m.WithRead(ctx, "rw", nothing, again...))
			assert.NoError(t, w.m.WithWrite(ctx, "rw", nothing, again...))
			return nil
		}))
		require.NoError(t, w.m.WithPermit(t.Context(), "pool", 3, func(ctx context.Context) error {
			assert.ErrorIs(t, w.m.WithPermit(ctx, "pool", 3, nothing), locks.ErrReentrant)
			assert.ErrorIs(t, w.m.WithPermit(ctx, "pool", 3, nothing, again...), locks.ErrReentrant, "a second permit")
			return nil
		}))
	})
}

func TestAReentrantCallRunsUnderTheLeaseThatThereIs(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			outer := locks.From(ctx)
			for _, call := range []func() error{
				func() error { return w.m.With(ctx, "k", nothing) },
				func() error { return w.m.WithAll(ctx, []string{"a", "k"}, nothing) },
				func() error { return w.m.Lead(ctx, "k", nothing) },
				func() error { _, err := w.m.Acquire(ctx, "k"); return err },
				func() error { _, err := w.m.TryWith(ctx, "k", nothing); return err },
			} {
				assert.ErrorIs(t, call(), locks.ErrReentrant)
			}
			w.mustFree("a")
			require.NoError(t, w.m.With(ctx, "k", func(ctx context.Context) error {
				assert.Same(t, outer, locks.From(ctx))
				assert.False(t, w.free("k"))
				return nil
			}, locks.Reentrant()))
			require.NoError(t, w.m.WithAll(ctx, []string{"a", "k"}, func(ctx context.Context) error {
				assert.Same(t, outer, locks.FromKey(ctx, "k"))
				assert.False(t, w.free("a"))
				return nil
			}, locks.Reentrant()))
			w.mustFree("a")
			assert.False(t, w.free("k"), "the outer call gives it back")
			return nil
		}))
		assert.Len(t, w.store.Calls(lockstest.Acquire), 2)
		w.mustFree("k")
	})
}

func TestAnotherTenantsLockIsAnotherLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		acme := w.manager(w.store, locks.Tenant("acme"))
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			return acme.With(ctx, "k", func(ctx context.Context) error {
				assert.Equal(t, "acme", locks.From(ctx).Tenant())
				return nil
			})
		}))
	})
}

func TestALeaseInACtxThatOutlivedItHasAnErr(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var kept context.Context
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			kept = context.WithoutCancel(ctx)
			return nil
		}))
		require.ErrorIs(t, locks.From(kept).Err(), locks.ErrReleased)
		assert.Zero(t, locks.From(kept).Remaining())
		require.NoError(t, w.m.With(kept, "k", nothing, locks.Reentrant()), "it is no lease any more, so another one is taken")
		assert.Nil(t, locks.From(t.Context()))
		assert.Nil(t, locks.FromKey(kept, "other"))
	})
}

func TestLeadRunsAgainAfterALoss(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		mine := errors.New("mine")
		times := 0
		err := w.m.Lead(t.Context(), "leader", func(ctx context.Context) error {
			if times++; times < 4 {
				require.NoError(t, steal(w, ctx))
				<-ctx.Done()
				return errors.New("why it stopped")
			}
			return mine
		})
		require.Same(t, mine, err)
		assert.Equal(t, 4, times)
		assert.Len(t, w.events.of(locks.EventLed), 4)
		w.mustFree("leader")
	})
}

func TestOneOfAllLeadsAtATime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var leading, led atomic.Int32
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			for i := range 5 {
				m := []*locks.Manager{w.m, w.other}[i%2]
				async.Go(ctx, func(ctx context.Context) error {
					for ctx.Err() == nil {
						err := m.Lead(ctx, "leader", func(ctx context.Context) error {
							assert.EqualValues(t, 1, leading.Add(1))
							defer leading.Add(-1)
							led.Add(1)
							_ = async.Sleep(ctx, 5*time.Minute)
							return nil
						})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			return nil
		}), context.DeadlineExceeded)
		assert.InDelta(t, 12, led.Load(), 2)
	})
}

func TestLeadWaitsForAStoreThatIsDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begin := time.Now()
		w.store.Inject(func(lockstest.Call) (f lockstest.Fault) {
			if time.Since(begin) < time.Hour {
				f.Fail = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, w.m.Lead(t.Context(), "leader", nothing))
		assert.GreaterOrEqual(t, time.Since(begin), time.Hour)
		assert.LessOrEqual(t, time.Since(begin), time.Hour+10*time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.store.Inject(func(lockstest.Call) lockstest.Fault { return lockstest.Fault{Silent: true} })
		require.ErrorIs(t, w.m.Lead(ctx, "leader", nothing), context.DeadlineExceeded)
	})
}

func TestErrorsOfTheCallEndLead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "leader")
		require.ErrorIs(t, w.m.Lead(t.Context(), "leader", nothing, locks.NoWait()), locks.ErrNotGranted)
		require.ErrorIs(t, w.m.Lead(t.Context(), "leader", nothing, locks.Permit(3)), locks.ErrConflict)
		require.ErrorIs(t, w.m.Lead(t.Context(), "", nothing), locks.ErrValidation)
		free()
		// Errors of the body are its own, whatever they are.
		notGranted := &locks.NotGrantedError{Key: "another"}
		require.Same(t, notGranted, w.m.Lead(t.Context(), "leader", func(context.Context) error { return notGranted }))
		lost := &locks.LostError{Key: "another"}
		require.Same(t, lost, w.m.Lead(t.Context(), "leader", func(context.Context) error { return lost }))
		assert.Panics(t, func() { _ = w.m.Lead(t.Context(), "leader", func(context.Context) error { panic("boom") }) })
		w.mustFree("leader")
	})
}
