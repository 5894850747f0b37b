package locks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestACallThatWaitsForTheRestOfItsKeysHasNoBodyThatOverruns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "b")
		defer free()
		told := make(chan struct{}, 1)
		// The request for b is withdrawn slowly, so the call is busy when a may be granted to others.
		w.store.Inject(func(c lockstest.Call) lockstest.Fault {
			if c.Step == lockstest.Release {
				return lockstest.Fault{Before: time.Second}
			}
			return lockstest.Fault{}
		})
		go func() {
			synctest.Wait()
			r, err := w.other.Holders(t.Context(), "a")
			assert.NoError(t, err)
			assert.NoError(t, w.other.ReleaseVersion(t.Context(), "a", r[0].Version))
		}()
		err := w.m.WithAll(t.Context(), []string{"a", "b"}, func(context.Context) error {
			assert.Fail(t, "it does not have all")
			return nil
		}, locks.OnOverrun(func(*locks.LostError) { told <- struct{}{} }))
		require.ErrorAs(t, err, new(*locks.LostError))
		assert.Empty(t, told, "there is no body that runs")
	})
}

func TestAnOverrunIsToldOnceAlsoWithReentrantCalls(t *testing.T) {
	overruns := func(context.Context) error {
		time.Sleep(time.Minute) // it does not look at its ctx
		return nil
	}
	for name, call := range map[string]func(m *locks.Manager, ctx context.Context, body func(context.Context) error, options ...locks.LockOption) error{
		"With": func(m *locks.Manager, ctx context.Context, body func(context.Context) error, options ...locks.LockOption) error {
			return m.With(ctx, "k", body, options...)
		},
		"WithAll": func(m *locks.Manager, ctx context.Context, body func(context.Context) error, options ...locks.LockOption) error {
			return m.WithAll(ctx, []string{"j", "k"}, body, options...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				fail(w, lockstest.Renew, lockstest.Fault{Silent: true})
				var told atomic.Int32
				err := call(w.m, t.Context(), func(ctx context.Context) error {
					return w.m.With(ctx, "k", overruns, locks.Reentrant())
				}, locks.OnOverrun(func(*locks.LostError) { told.Add(1) }))
				require.ErrorIs(t, err, locks.ErrUnavailable)
				assert.EqualValues(t, 1, told.Load())
			})
		})
	}
}
