package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestDiscardedValues(t *testing.T) {
	late := func(t *testing.T, ctx context.Context, drop func(int), opts ...async.TaskOption) (*async.Future[int], error) {
		f := async.Execute(ctx, obedient(time.Second, 7, nil), append(opts, async.OnDiscard(drop))...)
		_, err := f.Await(ctx, time.Second)
		return f, err
	}
	for name, test := range map[string]struct {
		run  func(t *testing.T, ctx context.Context, drop func(int))
		want []int
	}{
		"late after a timeout was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, told := late(t, ctx, drop)
			require.ErrorIs(t, told, context.DeadlineExceeded)
			for range 3 {
				v, err := f.Await(ctx, 0)
				require.Zero(t, v)
				require.ErrorIs(t, err, told, "the future settles with what that waiter was told")
			}
		}, []int{7}},
		"late after a done ctx was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			why := errors.New("why")
			brief, cancel := context.WithCancelCause(ctx)
			cancel(why)
			f := async.Execute(ctx, obedient(time.Second, 7, nil), async.OnDiscard(drop))
			_, err := f.Await(brief, 0)
			require.ErrorIs(t, err, why)
			_, err = f.Wait(ctx)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, context.Canceled)
		}, []int{7}},
		"many were told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, obedient(time.Second, 7, nil), async.OnDiscard(drop))
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					_, err := f.Await(ctx, time.Second)
					require.Error(t, err)
				})
			}
			all.Wait()
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, []int{7}},
		"within grace it is given": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, err := late(t, ctx, drop, async.Grace(2*time.Second))
			require.NoError(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"in time it is given": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, stubborn(time.Second, 7, nil), async.OnDiscard(drop))
			v, err := f.Await(ctx, 2*time.Second)
			require.NoError(t, err)
			require.Equal(t, 7, v)
			v, err = f.Await(ctx, -1)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"who only observes is told nothing": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f := async.Execute(ctx, stubborn(time.Minute, 7, nil), async.OnDiscard(drop))
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := f.Wait(brief)
			require.Error(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"a late error is no value": {func(t *testing.T, ctx context.Context, drop func(int)) {
			own := &awaitError{1}
			f := async.Execute(ctx, obedient(time.Second, 7, error(own)), async.OnDiscard(drop))
			_, told := f.Await(ctx, time.Second)
			require.Error(t, told)
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, own)
			require.ErrorIs(t, err, told)
		}, nil},
		"without the option a late value is given": {func(t *testing.T, ctx context.Context, _ func(int)) {
			f := async.Execute(ctx, obedient(time.Second, 7, nil))
			_, err := f.Await(ctx, time.Second)
			require.Error(t, err)
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, nil},
		"a second Resolve": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			require.True(t, p.Resolve(1))
			require.False(t, p.Resolve(2))
			require.False(t, p.Resolve(3))
			v, err := f.Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 1, v)
		}, []int{2, 3}},
		"a Resolve after Reject": {func(t *testing.T, ctx context.Context, drop func(int)) {
			own := errors.New("own")
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			require.True(t, p.Reject(own))
			require.False(t, p.Resolve(2))
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, own)
		}, []int{2}},
		"a Resolve after a timeout was told": {func(t *testing.T, ctx context.Context, drop func(int)) {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(drop))
			_, told := f.Await(ctx, time.Second)
			require.ErrorIs(t, told, context.DeadlineExceeded)
			p.Resolve(7)
			_, err := f.Wait(ctx)
			require.ErrorIs(t, err, told)
		}, []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				var mu sync.Mutex
				var dropped []int
				test.run(t, ctx, func(v int) {
					mu.Lock()
					defer mu.Unlock()
					dropped = append(dropped, v)
				})
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, test.want, dropped)
			})
		})
	}
}

// TestALateValueIsEitherGivenOrDiscarded: each value is handed to exactly one
// of the two, whatever the race between result and limit.
func TestALateValueIsEitherGivenOrDiscarded(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 2000 {
		var dropped atomic.Int32
		f := async.Execute(root, func(context.Context) (int, error) {
			for range i % 7 {
				runtime.Gosched()
			}
			return 7, nil
		}, async.OnDiscard(func(int) { dropped.Add(1) }))
		var told, given atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				brief, cancel := context.WithCancel(root)
				go cancel()
				if v, err := f.Await(brief, 0); err == nil {
					require.Equal(t, 7, v)
					given.Add(1)
				} else {
					told.Add(1)
				}
				cancel()
			})
		}
		all.Wait()
		v, err := f.Await(root, 0)
		switch dropped.Load() {
		case 0:
			require.NoError(t, err)
			require.Equal(t, 7, v)
		case 1:
			require.Error(t, err)
			require.NotZero(t, told.Load())
			require.Zero(t, given.Load(), "a value that was given must not be discarded")
		default:
			t.Fatal("discarded more than once")
		}
	}
}

// TestAPromiseResolvedJustAsItsWaitExpiresIsGivenOrDiscarded has the two run
// with all sorts of small delays.
func TestAPromiseResolvedJustAsItsWaitExpiresIsGivenOrDiscarded(t *testing.T) {
	ctx := asynctest.Context(t)
	for i := range 20_000 / raceFactor {
		var discarded atomic.Int32
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(int) { discarded.Add(1) }), async.OnAbort(contextHook))
			var bare sync.WaitGroup
			var ready atomic.Bool
			spin := func(n int) {
				for range n {
					ready.Load()
				}
			}
			bare.Go(func() {
				for !ready.Load() {
				}
				spin(i % 50)
				p.Resolve(1)
			})
			ready.Store(true)
			spin(i % 71)
			_, err := f.Await(ctx, -1)
			bare.Wait()
			if err != nil {
				require.EqualValues(t, 1, discarded.Load())
			} else {
				require.Zero(t, discarded.Load())
			}
			return nil
		}))
	}
}

func TestADiscardHookOfAnotherTypePanicsAtTheCall(t *testing.T) {
	ctx := asynctest.Context(t)
	ran := false
	handler := func(context.Context) (int, error) { ran = true; return 0, nil }
	for name, call := range map[string]func(){
		"Execute":    func() { async.Execute(ctx, handler, async.OnDiscard(func(string) {})) },
		"named type": func() { async.Execute(ctx, handler, async.OnDiscard(func(time.Duration) {})) },
		"interface":  func() { async.Execute(ctx, handler, async.OnDiscard(func(any) {})) },
		"Start":      func() { async.Start(ctx, nothing, async.OnDiscard(func(int) {})) },
		"NewPromise": func() { async.NewPromise[int](ctx, async.OnDiscard(func(string) {})) },
		"in a scope": func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Execute(ctx, handler, async.OnDiscard(func(string) {}))
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := panicFrom(call)
			require.NotNil(t, p)
			require.Contains(t, strings.ToLower(fmt.Sprint(p)), "discard")
		})
	}
	require.False(t, ran)
	require.Empty(t, asynctest.Live(ctx))
}

func TestADiscardHookMayAwaitATaskOfItsLimit(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		f := async.Execute(ctx, obedient(0, 1, nil), async.OnDiscard(func(int) {
			_, err := async.Execute(ctx, answer).Await(ctx, time.Minute)
			require.NoError(t, err)
		}))
		_, err := f.Await(ctx, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return nil
	})
}
