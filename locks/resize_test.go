package locks_test

import (
	"context"
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

func TestARequestThatWaitsDoesNotUndoALaterResize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "s", locks.Permits(4, 4))
		defer free()
		size := func() int {
			r, err := w.other.Get(t.Context(), "s")
			require.NoError(t, err)
			return r.Size
		}
		done := make(chan error, 1)
		go func() { done <- w.m.WithPermits(t.Context(), "s", 5, 5, nothing, locks.Resize()) }()
		synctest.Wait()
		require.Equal(t, 5, size())
		_, err := w.other.CreateSemaphore(t.Context(), "s", 3)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, size())
		require.ErrorIs(t, <-done, locks.ErrConflict)
	})
}

// TestAGrantThatCameTooLateDoesNotUndoALaterResize has the answer to a request that changed
// the size come after its own end: what is asked for in its place changes nothing.
func TestAGrantThatCameTooLateDoesNotUndoALaterResize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const lease = time.Second
		_, err := w.other.CreateSemaphore(t.Context(), "s", 2)
		require.NoError(t, err)
		answer := make(chan struct{})
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.Late = answer
			}
			return f
		})
		time.AfterFunc(trusted(lease), func() {
			_, err := w.other.CreateSemaphore(t.Context(), "s", 3)
			require.NoError(t, err)
			close(answer)
		})
		h, err := w.m.Acquire(t.Context(), "s", locks.Permit(5), locks.Resize(), locks.LeaseFor(lease))
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		r, err := w.other.Get(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, 3, r.Size)
	})
}

// TestASemaphoreIsResizedWhileTwelveCallersUseIt: none of them fails, and no more are inside
// than the record says.
func TestASemaphoreIsResizedWhileTwelveCallersUseIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const callers, turns = 12, 20
		var inside, limit atomic.Int64
		limit.Store(5)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for c := range callers {
				m := []*locks.Manager{w.m, w.other}[c%2]
				async.Go(ctx, func(ctx context.Context) error {
					for range turns {
						err := m.WithPermit(ctx, "s", 5, func(ctx context.Context) error {
							assert.LessOrEqual(t, inside.Add(1), limit.Load())
							defer inside.Add(-1)
							return async.Sleep(ctx, time.Second)
						})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			for _, size := range []int64{3, 8, 1, 2, 5} {
				// Not when permits are handed on: who was told of the size before, and who after, have no order then.
				if err := async.Sleep(ctx, 5137*time.Millisecond); err != nil {
					return err
				}
				limit.Store(max(limit.Load(), min(size, 5)))
				if _, err := w.other.CreateSemaphore(ctx, "s", int(size)); err != nil {
					return err
				}
				if err := async.Sleep(ctx, 2*time.Second); err != nil { // those inside have gone by then
					return err
				}
				limit.Store(min(size, 5))
			}
			return nil
		}))
		var told []int
		for _, e := range w.events.of(locks.EventSmaller) {
			told = append(told, e.Count)
		}
		assert.Equal(t, []int{3, 1, 2}, told)
	})
}

func TestASmallerNumberBindsItsCallerWhoAsksNoMoreOftenForThat(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "s", locks.Permit(5))
		granted := make(chan error, 1)
		go func() { granted <- w.m.WithPermit(t.Context(), "s", 1, nothing) }()
		synctest.Wait()
		before := len(w.store.Calls(lockstest.Acquire))
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, len(w.store.Calls(lockstest.Acquire))-before, 12)
		assert.True(t, w.free("s", locks.Permit(5)))
		free()
		require.NoError(t, <-granted)
	})
}

func TestAsRecordedMakesNoSemaphoreAndStrictWantsItsSize(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.ErrorIs(t, w.m.WithPermit(t.Context(), "s", locks.AsRecorded, nothing), locks.ErrNotFound)
		_, err := w.m.CreateSemaphore(t.Context(), "s", locks.AsRecorded)
		require.ErrorIs(t, err, locks.ErrValidation)
		require.NoError(t, w.m.WithPermit(t.Context(), "s", 3, nothing))
		require.NoError(t, w.m.WithPermits(t.Context(), "s", locks.AsRecorded, 3, nothing))
		require.ErrorIs(t, w.m.WithPermits(t.Context(), "s", locks.AsRecorded, 4, nothing), locks.ErrConflict)
		require.ErrorIs(t, w.m.WithPermit(t.Context(), "s", 4, nothing, locks.Strict()), locks.ErrConflict)
		require.NoError(t, w.m.WithPermit(t.Context(), "s", 3, nothing, locks.Strict()))
		require.ErrorIs(t, w.m.WithPermit(t.Context(), "s", locks.AsRecorded, nothing, locks.Resize()), locks.ErrValidation)
	})
}
