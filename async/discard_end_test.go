package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAValueIsGivenOrDiscarded by the end of its scope, once, whatever becomes
// of its future.
func TestAValueIsGivenOrDiscarded(t *testing.T) {
	seven := func(context.Context) (int, error) { return 7, nil }
	why := errors.New("not needed")
	for name, test := range map[string]struct {
		use     func(t *testing.T, ctx context.Context, f *async.Future[int])
		handler func(ctx context.Context) (int, error)
		dropped int32
		fails   bool
		told    error // what the future holds at the end
	}{
		"never awaited": {
			func(*testing.T, context.Context, *async.Future[int]) {}, seven, 1, false, async.ErrScopeEnded},
		"its channel was watched": {
			func(_ *testing.T, _ context.Context, f *async.Future[int]) { <-f.Done() }, seven, 1, false, async.ErrScopeEnded},
		"awaited": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			v, err := f.Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, seven, 0, false, nil},
		"awaited after it has settled": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			<-f.Done()
			v, err := f.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, seven, 0, false, nil},
		"its result was taken": {func(t *testing.T, _ context.Context, f *async.Future[int]) {
			<-f.Done()
			v, err, ok := f.Result()
			require.True(t, ok)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, seven, 0, false, nil},
		"awaited with all": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			require.Equal(t, []async.Result[int]{{Value: 7}}, async.AwaitAll(ctx, 0, f))
		}, seven, 0, false, nil},
		"cancelled, and it succeeds": {func(_ *testing.T, _ context.Context, f *async.Future[int]) {
			f.Cancel(why)
		}, obedient(time.Second, 7, nil), 1, false, why},
		"cancelled after it has settled": {func(t *testing.T, _ context.Context, f *async.Future[int]) {
			<-f.Done()
			require.False(t, f.Cancel(why))
		}, seven, 1, false, why},
		"cancelled after it was given": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			v, err := f.Await(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, 7, v)
			require.False(t, f.Cancel(why))
		}, seven, 0, false, nil},
		"awaited in an exit hook": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				v, err := f.Await(ctx, 0)
				require.Equal(t, 7, v)
				return err
			})
		}, seven, 0, false, nil},
		"beside a child's error": {func(*testing.T, context.Context, *async.Future[int]) {},
			func(ctx context.Context) (int, error) {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				return 7, nil
			}, 1, true, errPlanted},
		"beside a child's echo, after a timeout was told": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			_, err := f.Await(ctx, time.Second)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}, func(ctx context.Context) (int, error) {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
			time.Sleep(time.Minute)
			return 7, nil
		}, 1, false, context.DeadlineExceeded},
		"beside an error of its own": {func(t *testing.T, ctx context.Context, f *async.Future[int]) {
			_, err := f.Await(ctx, 0)
			require.ErrorIs(t, err, errPlanted)
		}, func(context.Context) (int, error) { return 7, errPlanted }, 0, false, errPlanted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var dropped atomic.Int32
				var f *async.Future[int]
				err := async.Scope(ctx, func(ctx context.Context) error {
					f = async.Execute(ctx, test.handler, async.OnDiscard(func(v int) {
						require.Equal(t, 7, v)
						dropped.Add(1)
					}))
					test.use(t, ctx, f)
					return nil
				})
				require.Equal(t, test.fails, err != nil, "%v", err)
				require.Equal(t, test.dropped, dropped.Load())
				v, err := f.Wait(ctx)
				if test.told == nil {
					require.NoError(t, err)
					require.Equal(t, 7, v, "given once, it is given for ever")
				} else {
					require.ErrorIs(t, err, test.told)
				}
				f.Cancel(why)
				require.Equal(t, test.dropped, dropped.Load(), "once")
			})
		})
	}
}

// TestADiscardThatFailsAtTheEndFailsTheScope, behind other errors.
func TestADiscardThatFailsAtTheEndFailsTheScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Execute(ctx, func(context.Context) (int, error) { return 7, nil },
				async.OnDiscard(func(int) { plantedPanic() }))
			async.Go(ctx, func(context.Context) error { return errors.New("first") })
			return nil
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Len(t, list.Errors, 2)
		require.ErrorIs(t, list.Errors[1], errPlanted)
	})
}

// TestTheValueOfARootTaskIsDiscardedWhenItsFutureIsCollected, and is not if it
// was given.
func TestTheValueOfARootTaskIsDiscardedWhenItsFutureIsCollected(t *testing.T) {
	ctx := rootContext(t)
	dropped := make(chan int, 2)
	start := func(v int, give bool) {
		f := async.Execute(ctx, func(context.Context) (int, error) { return v, nil }, async.OnDiscard(func(v int) { dropped <- v }))
		<-f.Done()
		if give {
			_, _ = f.Await(ctx, 0)
		}
	}
	start(1, true)
	start(2, false)
	for {
		runtime.GC()
		select {
		case v := <-dropped:
			require.Equal(t, 2, v)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestAScopeKeepsNothingOfWhatWasGiven: of values, nor of failures and panics that
// were: a server's scope may last for a year.
func TestAScopeKeepsNothingOfWhatWasGiven(t *testing.T) {
	for name, handler := range map[string]func(context.Context) ([]byte, error){
		"values": func(context.Context) ([]byte, error) { return make([]byte, 10_000), nil },
		"errors": func(context.Context) ([]byte, error) { return nil, errors.New(string(make([]byte, 10_000))) },
		"panics": func(context.Context) ([]byte, error) { panic(string(make([]byte, 10_000))) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				before := liveHeap()
				for range 1000 {
					f := async.Execute(ctx, handler, async.OnDiscard(func([]byte) {}))
					<-f.Done()
					_, _ = f.Wait(ctx)
				}
				require.Less(t, liveHeap()-before, int64(1<<20))
				return nil
			}))
		})
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAPromiseDiscardsWhatNobodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped atomic.Int32
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			f, p := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			require.True(t, p.Resolve(1)) // never awaited
			f.Cancel(nil)
			require.EqualValues(t, 1, dropped.Load())
			g, q := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			require.True(t, g.Cancel(nil))
			require.False(t, q.Resolve(10))
			require.EqualValues(t, 11, dropped.Load())
			async.NewPromise[int](ctx, async.OnDiscard(func(v int) { t.Error("it has no value") }))
			_, r := async.NewPromise[int](ctx, async.OnDiscard(func(v int) { dropped.Add(int32(v)) }))
			r.Resolve(100)
			return nil
		}))
		require.EqualValues(t, 111, dropped.Load())
	})
}
