package locks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/memstore"
)

// watchedCtx calls a function whenever somebody asks for its channel or its error.
type watchedCtx struct {
	context.Context
	asked func()
}

func (c watchedCtx) Done() <-chan struct{} {
	c.asked()
	return c.Context.Done()
}

func (c watchedCtx) Err() error {
	c.asked()
	return c.Context.Err()
}

func TestABodyThatWasNotBegunIsNoSuccess(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		release := sync.OnceFunc(func() { require.NoError(t, h.Release(t.Context())) })
		ran := false
		err = h.Run(watchedCtx{t.Context(), release}, func(context.Context) error {
			ran = true
			return nil
		})
		assert.False(t, ran, "the lock was given back before the body could begin")
		require.ErrorIs(t, err, locks.ErrReleased)
	})
}

func TestABodyThatOutlivedTheLockOfTheCallAroundItIsNoSuccess(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var inner error
		ended := make(chan struct{})
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			begun := make(chan struct{})
			async.Detach(ctx, "outlives", func(ctx context.Context) error {
				defer close(ended)
				inner = w.m.With(ctx, "k", func(ctx context.Context) error {
					close(begun)
					<-ctx.Done()
					time.Sleep(time.Second) // somebody else may have the lock now
					return nil
				}, locks.Reentrant())
				return nil
			})
			<-begun
			return nil
		}))
		w.mustFree("k")
		<-ended
		require.ErrorIs(t, inner, locks.ErrReleased)
	})
}

func TestACallerMayUseTheManagerWhereItsContextIsAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m, free := waitedFor(t, cancel)
	defer free()
	blocked := make(chan struct{}, 1)
	asked := func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = m.TryWith(context.Background(), "another", nothing)
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			select {
			case blocked <- struct{}{}:
			default:
			}
		}
	}
	_, err := m.Acquire(watchedCtx{ctx, asked}, "k", locks.Wait(time.Minute))
	require.ErrorIs(t, err, locks.ErrNotGranted)
	assert.Empty(t, blocked, "the manager was locked when it asked")
}

// waitedFor returns a manager whose lock "k" somebody else has, until free is called. It calls
// waits when a call waits.
func waitedFor(t *testing.T, waits func()) (m *locks.Manager, free func()) {
	t.Helper()
	store := memstore.New()
	m, err := locks.New(store, locks.Observe(func(e locks.Event) {
		if e.Kind == locks.EventWaiting {
			waits()
		}
	}))
	require.NoError(t, err)
	other, err := locks.New(store)
	require.NoError(t, err)
	h, err := other.Acquire(t.Context(), "k")
	require.NoError(t, err)
	return m, func() { require.NoError(t, h.Release(context.Background())) }
}

func TestWithAllThatPanicsGivesBackWhatItHas(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) lockstest.Fault {
			if c.Step == lockstest.Acquire && c.Name.Key == "b" {
				return lockstest.Fault{Do: func() { panic("a fault of the store") }}
			}
			return lockstest.Fault{}
		})
		require.PanicsWithValue(t, "a fault of the store", func() {
			_ = w.m.WithAll(t.Context(), []string{"a", "b"}, nothing)
		})
		w.mustFree("a")
	})
}

func TestALockThatNobodyWasGivenIsNotRenewed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.manager(w.store, locks.Observe(func(e locks.Event) {
			if e.Kind == locks.EventGranted {
				panic("a fault of the observer")
			}
		}))
		require.PanicsWithValue(t, "a fault of the observer", func() { _ = m.With(t.Context(), "k", nothing) })
		time.Sleep(leaseTime)
		w.mustFree("k")
	})
}
