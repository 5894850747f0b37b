package lease_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/lease"
)

// keepMany keeps n leases that were granted at about the same time.
func (w *world) keepMany(n int, d time.Duration) []*lease.Lease {
	all := make([]*lease.Lease, n)
	for i := range all {
		all[i] = w.keep(fmt.Sprintf("k%05d", i), d)
		if i%100 == 0 {
			time.Sleep(10 * ms)
		}
	}
	return all
}

func TestManyLeasesAreRenewedInOneCall(t *testing.T) {
	const n = 10_000
	in(t, func(ctx context.Context, w *world) {
		all := w.keepMany(n, time.Minute)
		time.Sleep(3 * time.Minute)
		renewed := 0
		for _, c := range w.made() {
			renewed += len(c.batch)
		}
		assert.LessOrEqual(t, len(w.made()), 12)
		assert.Equal(t, 9*n, renewed)
		for _, l := range all {
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(ctx))
		}
	})
}

func TestACallRenewsNoMoreLeasesThanItMay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		all := w.keepMany(100, length)
		time.Sleep(length)
		for _, c := range w.made() {
			assert.LessOrEqual(t, len(c.batch), 30)
		}
		for _, l := range all {
			require.NoError(t, l.Release(ctx))
		}
	}, lease.Most(30))
}

func TestASlowCallForLongLeasesHoldsUpNoShortOnes(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if c.has("long") {
				return silent(ctx, c)
			}
			return nil, nil
		})
		long, short := w.keep("long", time.Hour), w.keep("short", time.Second)
		time.Sleep(45 * time.Minute)
		require.NoError(t, short.Err())
		require.NoError(t, long.Err())
		for _, c := range w.made() {
			require.Len(t, c.batch, 1)
		}
		require.NoError(t, long.Release(ctx))
		require.NoError(t, short.Release(ctx))
	})
}

// A store fails until some leases have five seconds left and others half a minute, and then
// answers after six seconds. A call ends with the first of its leases: one for both sorts
// would be of no use to either.
func TestLeasesThatAreNearlyOverCutNoCallForOthersShort(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		const d, well = time.Minute, 52 * time.Second
		begin := w.k.Now()
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if c.at-begin < well {
				return nil, errStore
			}
			for _, r := range c.batch {
				assert.Equal(t, c.batch[0].Of[0], r.Of[0], "both sorts in one call")
			}
			if err := async.Sleep(ctx, 6*time.Second); err != nil {
				return nil, err
			}
			return nil, nil
		})
		var early []*lease.Lease
		for i := range 100 {
			early = append(early, w.keep(fmt.Sprint("early", i), d))
		}
		time.Sleep(30 * time.Second)
		late := w.keepMany(1000, d) // so that there are some in each lot
		time.Sleep(time.Minute)
		for _, l := range early {
			is(t, l.Err(), lease.ErrOver)
		}
		for _, l := range late {
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(ctx))
		}
	})
}

func TestALeaseThatIsSkippedIsRenewedAtOnceAlone(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(func(_ context.Context, c made) ([]error, error) {
			if len(c.batch) > 1 {
				return slices.Repeat([]error{fmt.Errorf("row: %w", lease.ErrSkipped)}, len(c.batch)), nil
			}
			return nil, nil
		})
		all := []*lease.Lease{w.keep("a", length), w.keep("b", length), w.keep("c", length)}
		time.Sleep(10 * length)
		calls := w.made()
		require.Len(t, calls[0].batch, 3)
		for _, c := range calls[1:4] {
			assert.Len(t, c.batch, 1)
			assert.Equal(t, calls[0].at, c.at)
		}
		for _, l := range all {
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(ctx))
		}
	})
}

func TestNotTooManyCallsForOneLeaseAreOnTheirWay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		running, most := 0, 0
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if len(c.batch) > 1 {
				return nil, lease.ErrSkipped
			}
			w.mu.Lock()
			running++
			most = max(most, running)
			w.mu.Unlock()
			time.Sleep(10 * ms)
			w.mu.Lock()
			running--
			w.mu.Unlock()
			return nil, nil
		})
		all := w.keepMany(200, length)
		time.Sleep(length)
		w.mu.Lock()
		assert.Equal(t, 32, most)
		w.mu.Unlock()
		for _, l := range all {
			require.NoError(t, l.Err())
			require.NoError(t, l.Release(ctx))
		}
	})
}

func TestOneBadLeaseOfManyLosesNoOther(t *testing.T) {
	for name, trouble := range map[string]func(context.Context, made) ([]error, error){"silent": silent, "down": down} {
		t.Run(name, func(t *testing.T) {
			in(t, func(ctx context.Context, w *world) {
				w.answers(func(ctx context.Context, c made) ([]error, error) {
					if c.has("bad") {
						return trouble(ctx, c)
					}
					return nil, nil
				})
				good := w.keepMany(1000, length)
				bad := w.keep("bad", length)
				time.Sleep(length)
				is(t, bad.Err(), lease.ErrOver)
				lost := 0
				for _, l := range good {
					if l.Err() != nil {
						lost++
					}
					require.NoError(t, l.Release(ctx))
				}
				assert.LessOrEqual(t, lost, 5, "each has a chance of about one in thousands")
			})
		})
	}
}

func TestAnAnswerOfTheWrongLengthIsNoAnswer(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.answers(func(context.Context, made) ([]error, error) { return []error{nil, nil}, nil })
		l := w.keep("k", length)
		time.Sleep(length)
		var over *lease.Error
		require.ErrorAs(t, l.Err(), &over)
		assert.EqualError(t, over.Err, "lease: 2 answers to 1 renewals")
	})
}

type brokenError struct{}

func (brokenError) Error() string { return "broken" }
func (brokenError) Is(error) bool { panic("no") }

func TestAnAnswerThatPanicsWhenItIsAskedIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { return nil, brokenError{} })
			l, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: time.Second})
			require.NoError(t, err)
			time.Sleep(time.Second)
			is(t, l.Err(), lease.ErrOver)
			return nil
		})
		require.ErrorContains(t, err, "panic in lease: renewal: no")
	})
}

func TestAFixedLeaseIsNotRenewed(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		l, other := w.keep("fixed", length, lease.Fixed()), w.keep("k", length)
		time.Sleep(length)
		is(t, l.Err(), lease.ErrOver)
		require.NoError(t, other.Release(ctx))
		for _, c := range w.made() {
			assert.False(t, c.has("fixed"))
		}
	})
}

func TestARenewFunctionMayUseTheKeeper(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		var held atomic.Pointer[lease.Lease]
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if c.has("a") {
				require.NoError(t, held.Load().End())
				require.NoError(t, w.keep("b", length).Release(ctx))
			}
			return nil, nil
		})
		l := w.keep("a", length)
		held.Store(l)
		time.Sleep(length)
		is(t, l.Err(), lease.ErrEnded)
		require.NoError(t, l.Release(ctx))
	})
}

func TestTheTasksOfAKeeperNeedNoSlotOfItsScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := lease.NewKeeper(ctx, func(context.Context, batch) ([]error, error) { return nil, nil })
			async.Go(ctx, func(ctx context.Context) error {
				l, err := k.Keep("k", lease.Term{Granted: k.Now(), Length: length})
				require.NoError(t, err)
				time.Sleep(10 * length) // it has the only slot
				require.NoError(t, l.Err())
				return l.Release(ctx)
			})
			return nil
		}, async.Limit(1)))
	})
}

// RenewNow sends what is not on its way, and the plan goes on from the answer.
func TestRenewNowRenewsAllThatIsNotOnItsWay(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		first := w.keep("first", length)
		time.Sleep(time.Second)
		second := w.keep("second", length)
		w.k.RenewNow()
		synctest.Wait()
		require.Len(t, w.made(), 1)
		assert.Len(t, w.made()[0].batch, 2)
		for _, l := range []*lease.Lease{first, second} {
			assert.Equal(t, w.clock.Now(), l.Term().Granted)
		}
		w.answers(silent)
		w.k.RenewNow()
		synctest.Wait()
		w.k.RenewNow()
		synctest.Wait()
		assert.Len(t, w.made(), 2, "that of the first RenewNow is on its way")
	})
}
