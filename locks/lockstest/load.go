package lockstest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// A LoadConfig says how much a store is to bear in [Load].
type LoadConfig struct {
	Held    int           // locks that are held at the same time, at most; 0: 10,000, with the race detector 1,000
	Lease   time.Duration // of these; 0: 15 s
	Waiters int           // that want one lock; 0: 1,000
}

// Load has one process hold many locks at a time, and a great many wait for one. No lock
// is lost, and everybody who waits gets the lock once, alone, under a token of its own.
func Load(t *testing.T, open func(t testing.TB) locks.Store, c LoadConfig) {
	manager := func(t testing.TB, lease time.Duration) *locks.Manager {
		m, err := locks.New(open(t), locks.Tenant("load-"+ID()), locks.Lease(lease))
		require.NoError(t, err)
		return m
	}
	t.Run("many locks are held and none is lost", func(t *testing.T) {
		lease := cmp.Or(c.Lease, 15*time.Second)
		held := 10_000
		if raceDetector {
			held = 1000
		}
		holdMany(t, manager(t, lease), lease, cmp.Or(c.Held, held))
	})
	t.Run("a great many wait for one lock", func(t *testing.T) {
		waitMany(t, manager(t, 15*time.Second), Fewer(cmp.Or(c.Waiters, 1000)))
	})
	t.Run("a semaphore gets other sizes under load", func(t *testing.T) {
		resize(t, manager(t, 15*time.Second))
	})
}

// holdMany holds n locks, or as many as the store grants in grantTime: what a slow store, or one on
// a slow machine, has granted in it, it can renew in a third of a lease, and it can take a lock
// back in the 5 s of a release while all others are renewed. So a lock that is lost, or not given
// back, is a fault.
func holdMany(t *testing.T, m *locks.Manager, lease time.Duration, n int) {
	ctx := t.Context()
	end := time.Now().Add(min(lease/5, grantTime))
	holds := make([]*locks.Hold, n)
	err := async.ForEach(ctx, until(end, n), func(ctx context.Context, i int) (err error) {
		holds[i], err = m.Acquire(ctx, fmt.Sprint("held-", i))
		return err
	}, async.Limit(16))
	require.NoError(t, err)
	holds = slices.DeleteFunc(holds, func(h *locks.Hold) bool { return h == nil })
	t.Logf("%d locks are held, wanted were %d", len(holds), n)
	require.NotEmpty(t, holds)
	held := duration(t, "LOCKS_LOAD", lease/2) // long enough for a renewal of each, and to have done with it
	for end := time.Now().Add(held); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for i, h := range holds {
			require.NoError(t, h.Err(), "lock %d", i)
		}
	}
	// Few at a time: each renewal goes on beside it, and an emulator does one call after the other.
	err = async.ForEach(ctx, slices.Values(holds), func(ctx context.Context, h *locks.Hold) error { return h.Release(ctx) }, async.Limit(4))
	require.NoError(t, err)
}

// grantTime is how long holdMany takes locks at most: a fifth of the time of a release.
const grantTime = time.Second

// until gives the numbers below n, as long as end is not reached.
func until(end time.Time, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n && time.Now().Before(end) && yield(i); i++ {
		}
	}
}

func waitMany(t *testing.T, m *locks.Manager, n int) {
	var inside, most, granted atomic.Int64
	var newest int64
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		for range n {
			async.Go(ctx, func(ctx context.Context) error {
				return m.With(ctx, "wanted", func(ctx context.Context) error {
					most.Store(max(most.Load(), inside.Add(1)))
					defer inside.Add(-1)
					token := locks.From(ctx).Token()
					if token <= newest {
						return fmt.Errorf("token %d after %d", token, newest)
					}
					newest = token
					granted.Add(1)
					return nil
				})
			})
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, n, granted.Load())
	require.EqualValues(t, 1, most.Load())
}

// resize changes the size of a semaphore with every request for one of its permits: there
// are never more holders than the greatest size, and everybody gets one, whatever size
// somebody else names meanwhile.
func resize(t *testing.T, m *locks.Manager) {
	const workers, rounds, biggest = 8, 10, 4
	var inside, most atomic.Int64
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		for w := range workers {
			async.Go(ctx, func(ctx context.Context) error {
				for n := range rounds {
					hold, err := m.Acquire(ctx, "pool", locks.Permit(1+(w+n)%biggest), locks.Resize())
					if err != nil {
						return err
					}
					now := inside.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					_ = async.Sleep(ctx, 2*time.Millisecond)
					inside.Add(-1)
					if err := hold.Release(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	require.NoError(t, err)
	require.LessOrEqual(t, most.Load(), int64(biggest))
}
