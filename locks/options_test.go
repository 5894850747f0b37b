package locks_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

func TestBadInputIsAClearErrorAndChangesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		long := strings.Repeat("k", 10<<10)
		all := func(keys ...string) func() error {
			return func() error { return w.m.WithAll(t.Context(), keys, nothing) }
		}
		with := func(key string, options ...locks.LockOption) func() error {
			return func() error { return w.m.With(t.Context(), key, nothing, options...) }
		}
		permits := func(size, n int) func() error {
			return func() error { return w.m.WithPermits(t.Context(), "k", size, n, nothing) }
		}
		second := func(f func() (locks.Record, error)) func() error {
			return func() error { _, err := f(); return err }
		}
		for name, call := range map[string]func() error{
			"no key":                     with(""),
			"a key of 10 kB":             with(long),
			"a negative lease":           with("k", locks.LeaseFor(-time.Second)),
			"no lease":                   with("k", locks.LeaseFor(0)),
			"a lease that is too short":  with("k", locks.LeaseFor(499*time.Millisecond)),
			"a lease that is too long":   with("k", locks.LeaseFor(24*time.Hour+1)),
			"a negative wait":            with("k", locks.Wait(-1)),
			"progress in no time":        with("k", locks.RequireProgress(0)),
			"a negative delay":           with("k", locks.LockDelay(-1)),
			"no overrun function":        with("k", locks.OnOverrun(nil)),
			"no option":                  with("k", nil),
			"data of 1 MB":               with("k", locks.Data(strings.Repeat("d", 1<<20))),
			"Strict and Resize":          with("k", locks.Permit(3), locks.Strict(), locks.Resize()),
			"a mutex with another size":  with("k", locks.Resize()),
			"size 0":                     permits(0, 1),
			"size 1,000,000":             permits(1_000_000, 1),
			"size 1,001":                 permits(1001, 1),
			"a negative size":            permits(-1, 1),
			"no permits":                 permits(3, 0),
			"more permits than the size": permits(3, 4),
			"no keys":                    all(),
			"a bad key of several":       all("a", long),
			"many keys":                  all(strings.Split(strings.Repeat("k,", 1001), ",")...),
			"all permits":                func() error { return w.m.WithAll(t.Context(), []string{"k"}, nothing, locks.Permit(3)) },
			"a semaphore of 0":           second(func() (locks.Record, error) { return w.m.CreateSemaphore(t.Context(), "k", 0) }),
			"a semaphore of 1,001":       second(func() (locks.Record, error) { return w.m.CreateSemaphore(t.Context(), "k", 1001) }),
			"a mutex without a key":      second(func() (locks.Record, error) { return w.m.CreateMutex(t.Context(), "") }),
			"get of no key":              second(func() (locks.Record, error) { return w.m.Get(t.Context(), "") }),
			"delete of no key":           func() error { return w.m.Delete(t.Context(), "", "") },
			"revoke of no key":           func() error { _, err := w.m.Revoke(t.Context(), ""); return err },
			"a heartbeat of no version":  func() error { _, err := w.m.Heartbeat(t.Context(), "k", ""); return err },
			"a release of no version":    func() error { return w.m.ReleaseVersion(t.Context(), "k", "") },
			"a version of 10 kB":         func() error { return w.m.ReleaseVersion(t.Context(), "k", long) },
			"a page of none":             func() error { _, err := w.m.List(t.Context(), "", 0); return err },
			"a page of all":              func() error { _, err := w.m.List(t.Context(), "", 1_000_000); return err },
			"an after of 10 kB":          func() error { _, err := w.m.List(t.Context(), long, 1); return err },
			"no store":                   func() error { _, err := locks.New(nil); return err },
			"a tenant of 10 kB":          func() error { _, err := locks.New(memstore.New(), locks.Tenant(long)); return err },
			"an owner of 10 kB":          func() error { _, err := locks.New(memstore.New(), locks.Owner(long)); return err },
			"a manager's negative lease": func() error { _, err := locks.New(memstore.New(), locks.Lease(-1)); return err },
			"a manager's long lease":     func() error { _, err := locks.New(memstore.New(), locks.Lease(25*time.Hour)); return err },
			"a nil option":               func() error { _, err := locks.New(memstore.New(), nil); return err },
			"a nil observer":             func() error { _, err := locks.New(memstore.New(), locks.Observe(nil)); return err },
		} {
			err := call()
			require.ErrorIs(t, err, locks.ErrValidation, name)
			var v *locks.ValidationError
			require.ErrorAs(t, err, &v, name)
			assert.NotEmpty(t, v.What, name)
			assert.Less(t, len(err.Error()), 300, name)
		}
		for _, step := range []lockstest.Step{lockstest.Acquire, lockstest.Create, lockstest.Release, lockstest.Renew, lockstest.Get, lockstest.List, lockstest.Delete, lockstest.Revoke} {
			assert.Empty(t, w.store.Calls(step), "the store was not asked")
		}
	})
}

func TestANilBodyPanics(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		assert.Panics(t, func() { _ = w.m.With(t.Context(), "k", nil) })
		assert.Panics(t, func() { _, _ = w.m.TryWith(t.Context(), "k", nil) })
		assert.Panics(t, func() { _ = w.m.WithAll(t.Context(), []string{"k"}, nil) })
		assert.Panics(t, func() { _ = w.m.Lead(t.Context(), "k", nil) })
		w.mustFree("k")
	})
}

// simple is a store that cannot do all.
type simple struct{ locks.Store }

func (simple) Traits() locks.Traits {
	return locks.Traits{Name: "simple", MinLease: 20 * time.Second, Simple: true, Hints: true}
}

func TestWhatASimpleStoreCannotDoIsRefused(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.manager(simple{memstore.New()})
		require.NoError(t, m.With(t.Context(), "k", nothing), "its shortest lease is the default")
		require.NoError(t, m.WithPermit(t.Context(), "pool", 3, nothing))
		require.ErrorIs(t, m.WithPermits(t.Context(), "pool", 3, 2, nothing), locks.ErrValidation)
		require.ErrorIs(t, m.WithRead(t.Context(), "rw", nothing), locks.ErrValidation)
		require.ErrorIs(t, m.WithWrite(t.Context(), "rw", nothing), locks.ErrValidation)
		require.ErrorIs(t, m.WithAll(t.Context(), []string{"a", "b"}, nothing), locks.ErrValidation)
		require.ErrorIs(t, m.With(t.Context(), "k", nothing, locks.LeaseFor(15*time.Second)), locks.ErrValidation)
	})
}

func TestABodyThatDoesNotGetOnLosesTheLock(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begin := time.Now()
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			h := locks.From(ctx)
			for range 60 {
				time.Sleep(time.Second)
				h.Progress()
			}
			require.NoError(t, h.Err())
			begin = time.Now()
			<-ctx.Done() // it hangs
			assert.InDelta(t, trusted(leaseTime), time.Since(begin), float64(leaseTime/2))
			return nil
		}, locks.RequireProgress(2*time.Second))
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostStalled, lost.Reason)
	})
}

func TestABodyThatGetsOnAgainInTimeKeepsTheLock(t *testing.T) {
	for _, lease := range []time.Duration{500 * time.Millisecond, leaseTime} {
		in(t, func(t *testing.T, w *world) {
			require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
				for range 50 {
					time.Sleep(lease * 45 / 100) // more than it may, and its renewal is due since long
					locks.From(ctx).Progress()
					synctest.Wait()
				}
				return nil
			}, locks.RequireProgress(lease/5), locks.LeaseFor(lease)))
		})
		in(t, func(t *testing.T, w *world) { // it says so when there is no time for another try
			require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
				for range 20 {
					time.Sleep(trusted(lease) - time.Millisecond)
					locks.From(ctx).Progress()
					synctest.Wait()
				}
				return nil
			}, locks.RequireProgress(lease/5), locks.LeaseFor(lease)))
		})
		in(t, func(t *testing.T, w *world) { // it says so before it is looked at
			require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
				for range 200 {
					time.Sleep(lease * 18 / 100)
					locks.From(ctx).Progress()
				}
				return nil
			}, locks.RequireProgress(lease/5), locks.LeaseFor(lease)))
		})
	}
}

func TestALockDelayKeepsTheLockShutAfterAnExpiryAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", nothing, locks.LockDelay(time.Minute)))
		w.mustFree("k")
		begin := time.Now()
		_, err := w.m.Acquire(t.Context(), "k", locks.LockDelay(time.Minute), locks.NoRenew())
		require.NoError(t, err)
		require.NoError(t, w.other.With(t.Context(), "k", nothing))
		assert.InDelta(t, leaseTime+time.Minute, time.Since(begin), float64(10*time.Millisecond))
	})
}

func TestDataIsSeenByOthers(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		data := func() string {
			r, err := w.other.Get(t.Context(), "k")
			require.NoError(t, err)
			if r.Data == nil {
				return ""
			}
			return *r.Data
		}
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			assert.Equal(t, "one", data())
			h := locks.From(ctx)
			require.NoError(t, h.SetData("two"))
			require.ErrorIs(t, h.SetData(strings.Repeat("d", 1<<20)), locks.ErrValidation)
			time.Sleep(leaseTime)
			assert.Equal(t, "two", data(), "with the next renewal")
			return h.SetData("three")
		}, locks.Data("one")))
		assert.Equal(t, "three", data(), "or with the release")
	})
}

func TestOnlyIfExistsAndDeleteOnRelease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.ErrorIs(t, w.m.With(t.Context(), "k", nothing, locks.OnlyIfExists()), locks.ErrNotFound)
		_, err := w.m.CreateMutex(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, w.m.With(t.Context(), "k", nothing, locks.OnlyIfExists(), locks.DeleteOnRelease()))
		_, err = w.m.Get(t.Context(), "k")
		require.ErrorIs(t, err, locks.ErrNotFound)
	})
}

func TestABodyThatOverrunsIsToldOfOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fail(w, lockstest.Renew, lockstest.Fault{Silent: true})
		begin := time.Now()
		var told atomic.Int32
		option := locks.OnOverrun(func(lost *locks.LostError) {
			assert.Equal(t, leaseTime, time.Since(begin), "when somebody else may be granted it")
			assert.Equal(t, "k", lost.Key)
			told.Add(1)
			time.Sleep(time.Hour)
		})
		err := w.m.With(t.Context(), "k", func(context.Context) error {
			time.Sleep(time.Minute) // it does not look at its ctx
			return nil
		}, option)
		require.ErrorIs(t, err, locks.ErrUnavailable)
		assert.EqualValues(t, 1, told.Load())
		assert.Equal(t, leaseTime+time.Hour, time.Since(begin), "the call waits for it")
	})
	in(t, func(t *testing.T, w *world) { // one that stops in time is not
		fail(w, lockstest.Renew, lockstest.Fault{Silent: true})
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, locks.OnOverrun(func(*locks.LostError) { assert.Fail(t, "it did not overrun") }))
		require.ErrorIs(t, err, locks.ErrUnavailable)
		time.Sleep(time.Hour)
	})
}

func TestALockThatIsNotRenewedEnds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begin := time.Now()
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			h := locks.From(ctx)
			require.NoError(t, h.Extend(ctx, time.Minute))
			assert.Equal(t, trusted(time.Minute), h.Remaining())
			<-ctx.Done()
			assert.Equal(t, trusted(time.Minute), time.Since(begin))
			return nil
		}, locks.NoRenew())
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostExpired, lost.Reason)
		assert.Len(t, w.store.Calls(lockstest.Renew), 1)
	})
}

func TestExtendNeverMakesALeaseShorter(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, h.Extend(t.Context(), time.Hour))
		require.NoError(t, h.Extend(t.Context(), time.Second))
		assert.Equal(t, trusted(time.Hour), h.Remaining())
		require.ErrorIs(t, h.Extend(t.Context(), 0), locks.ErrValidation)
		require.ErrorIs(t, h.Extend(t.Context(), 25*time.Hour), locks.ErrValidation)
		time.Sleep(30 * time.Minute)
		assert.False(t, w.free("k"))
		require.NoError(t, h.Err())

		fail(w, lockstest.Renew, lockstest.Fault{Silent: true})
		err = h.Extend(t.Context(), time.Hour)
		require.ErrorIs(t, err, locks.ErrUnavailable)
		require.ErrorIs(t, err, locks.ErrUnknownOutcome)
		require.NoError(t, h.Err(), "it is held still")
		w.store.Inject(nil)

		require.NoError(t, w.other.ReleaseVersion(t.Context(), "k", h.Version()))
		require.ErrorAs(t, h.Extend(t.Context(), time.Hour), new(*locks.LostError))
		require.ErrorAs(t, h.Extend(t.Context(), time.Hour), new(*locks.LostError))
	})
}

func TestReleaseMayBeCalledAnyNumberOfTimes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		w.store.Inject(func(lockstest.Call) lockstest.Fault { return lockstest.Fault{After: time.Second} })
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 10 {
				async.Go(ctx, func(context.Context) error { return h.Release(cancelled) })
			}
			return nil
		}))
		assert.Len(t, w.store.Calls(lockstest.Release), 1)
		require.ErrorIs(t, h.Err(), locks.ErrReleased)
		require.ErrorIs(t, h.SetData(""), locks.ErrReleased)
		require.ErrorIs(t, h.Extend(t.Context(), time.Second), locks.ErrReleased)
		require.ErrorIs(t, h.Run(t.Context(), nothing), locks.ErrReleased)
		assert.Zero(t, h.Remaining())
		<-h.Done()
		w.mustFree("k")
	})
}

func TestALockOfWithIsNotGivenBackByItsBody(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			require.ErrorIs(t, locks.From(ctx).Release(ctx), locks.ErrValidation)
			assert.False(t, w.free("k"))
			return locks.From(ctx).Err()
		}))
	})
}

func TestRunIsABodyUnderALockOfAcquire(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, h.Run(t.Context(), func(ctx context.Context) error {
			assert.Same(t, h, locks.From(ctx))
			require.ErrorIs(t, w.m.With(ctx, "k", nothing), locks.ErrReentrant)
			return w.m.With(ctx, "k", nothing, locks.Reentrant())
		}))
		assert.False(t, w.free("k"))
		err = h.Run(t.Context(), func(ctx context.Context) error {
			require.NoError(t, h.Release(ctx))
			assert.ErrorIs(t, context.Cause(ctx), locks.ErrReleased)
			return ctx.Err()
		})
		require.ErrorIs(t, err, locks.ErrReleased)

		h, err = w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		err = h.Run(t.Context(), func(ctx context.Context) error {
			require.NoError(t, w.other.ReleaseVersion(ctx, "k", h.Version()))
			<-ctx.Done()
			return nil
		})
		require.ErrorAs(t, err, new(*locks.LostError))
	})
}
