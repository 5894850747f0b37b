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

// TestAValueThatComesLateIsDiscarded: if a waiter was told of an expiry before, the value
// goes to the hook, and the future holds from then on what that waiter was told.
func TestAValueThatComesLateIsDiscarded(t *testing.T) {
	own, why := &awaitError{1}, errors.New("why")
	inTime := stubborn(time.Second, 7, nil)
	late := obedient(time.Second, 7, nil) // it stops for a second when it is told to
	for name, tc := range map[string]struct {
		handler func(ctx context.Context) (int, error)
		noHook  bool
		grace   time.Duration
		// The first wait is an Await with limit, of one and so many others at once; or
		// one with a ctx that is done, or a Wait with a ctx that lasts for limit.
		limit    time.Duration
		others   int
		stopped  bool
		observes bool

		told    error // that wait is told
		after   error // a later Wait is told; nil: it is given 7
		dropped []int
	}{
		"a timeout was told":    {handler: late, limit: time.Second, told: context.DeadlineExceeded, after: context.DeadlineExceeded, dropped: []int{7}},
		"many were told":        {handler: late, limit: time.Second, others: 19, told: context.DeadlineExceeded, after: context.DeadlineExceeded, dropped: []int{7}},
		"a done ctx was told":   {handler: late, stopped: true, told: why, after: why, dropped: []int{7}},
		"it comes within Grace": {handler: late, limit: time.Second, grace: 2 * time.Second},
		"it comes in time":      {handler: inTime, limit: 2 * time.Second},
		"one has looked on":     {handler: stubborn(time.Minute, 7, nil), limit: time.Second, observes: true, told: context.DeadlineExceeded},
		"it is an error":        {handler: obedient(time.Second, 7, error(own)), limit: time.Second, told: context.DeadlineExceeded, after: own},
		"there is no hook":      {handler: late, noHook: true, limit: time.Second, told: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				var dropped ints
				opts := []async.TaskOption{async.Grace(tc.grace)}
				if !tc.noHook {
					opts = append(opts, async.OnDiscard(dropped.add))
				}
				f := async.Execute(ctx, tc.handler, opts...)
				wait := func() (int, error) { return f.Await(ctx, tc.limit) }
				switch {
				case tc.stopped:
					brief, cancel := context.WithCancelCause(ctx)
					cancel(why)
					wait = func() (int, error) { return f.Await(brief, 0) }
				case tc.observes:
					brief, cancel := context.WithTimeout(ctx, tc.limit)
					defer cancel()
					wait = func() (int, error) { return f.Wait(brief) }
				}
				outcome := func(v int, err, want error) {
					require.ErrorIs(t, err, want)
					if want != error(own) { // beside its own error a handler may give a value
						require.Equal(t, want == nil, v == 7, v)
					}
				}
				var all sync.WaitGroup
				for range 1 + tc.others {
					all.Go(func() {
						v, err := wait()
						outcome(v, err, tc.told)
					})
				}
				all.Wait()
				for range 3 {
					v, err := f.Wait(ctx)
					outcome(v, err, tc.after)
				}
				synctest.Wait()
				require.Equal(t, tc.dropped, dropped.read())
			})
		})
	}
}

// TestAValueThatAPromiseDoesNotTakeIsDiscarded, in the order in which they came.
func TestAValueThatAPromiseDoesNotTakeIsDiscarded(t *testing.T) {
	own := errors.New("own")
	for name, tc := range map[string]struct {
		expires bool  // an Await before all else
		rejects error // before the values, nil: not
		values  []int
		err     error // what the promise holds; nil: the first of the values
		dropped []int
	}{
		"a second Resolve":                   {values: []int{1, 2, 3}, dropped: []int{2, 3}},
		"a Resolve after Reject":             {rejects: own, values: []int{2}, err: own, dropped: []int{2}},
		"a Resolve after a timeout was told": {expires: true, values: []int{7}, err: context.DeadlineExceeded, dropped: []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				var dropped ints
				f, p := async.NewPromise[int](ctx, async.OnDiscard(dropped.add))
				if tc.expires {
					_, err := f.Await(ctx, time.Second)
					require.ErrorIs(t, err, tc.err)
				}
				if tc.rejects != nil {
					require.True(t, p.Reject(tc.rejects))
				}
				for i, v := range tc.values {
					require.Equal(t, i == 0 && tc.err == nil, p.Resolve(v))
				}
				v, err := f.Wait(ctx)
				require.ErrorIs(t, err, tc.err)
				if tc.err == nil {
					require.Equal(t, tc.values[0], v)
				}
				synctest.Wait()
				require.Equal(t, tc.dropped, dropped.read())
			})
		})
	}
}

// ints are numbers that several goroutines may add to.
type ints struct {
	mu  sync.Mutex
	all []int
}

func (s *ints) add(v int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v)
}

func (s *ints) read() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
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

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A discard hook is no part of the handler, whose slot is free when it has returned.
func TestADiscardHookHasNoSlot(t *testing.T) {
	limitedScope(t, 1, func(t *testing.T, ctx context.Context) error {
		began := time.Now()
		async.Go(ctx, func(ctx context.Context) error {
			f := async.Execute(ctx, func(context.Context) (int, error) { return 1, nil }, async.OnDiscard(func(int) { time.Sleep(time.Hour) }))
			_ = async.Sleep(ctx, time.Millisecond)
			<-f.Done()
			return nil
		})
		time.Sleep(10 * time.Millisecond)
		async.Go(ctx, func(context.Context) error { require.Less(t, time.Since(began), time.Minute); return nil })
		return nil
	})
}

// TestTheInnerHookCounts where there are two.
func TestTheInnerHookCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner, outer ledger
		dial := func(d time.Duration) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { time.Sleep(d); return inner.open(), nil }
		}
		tasks := async.Discarding(outer.close, async.Discarding(inner.close, dial(time.Second), dial(2*time.Second))...)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			v, err := async.Race(ctx, tasks...).Await(ctx, 0)
			inner.give(v)
			return err
		}))
		inner.check(t)
		outer.check(t)
	})
}

// TestADiscardHookThatFailsHoldsUpNoOther: every value has its turn, and the
// scope is told.
func TestADiscardHookThatFailsHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var l ledger
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.All(ctx, async.Discarding(func(v int) {
				l.close(v)
				if v%2 == 0 {
					runtime.Goexit()
				}
				panic(errPlanted)
			}, slicesOf(4, func(context.Context) (int, error) { return l.open(), nil })...)...)
			return nil
		})
		require.ErrorIs(t, err, errPlanted)
		require.ErrorIs(t, err, async.ErrGoexit)
		l.check(t)
	})
}

func slicesOf[T any](n int, v T) (vs []T) {
	for range n {
		vs = append(vs, v)
	}
	return vs
}
