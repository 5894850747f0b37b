package async_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// The benchmarks stand beside what is written by hand today. To compare, run
// them alternating, as `make benchstat` does, and look at ratios only.

func answer(context.Context) (int, error) { return 42, nil }

func nothing(context.Context) error { return nil }

// busy burns about a microsecond.
func busy(context.Context) error {
	for i := range 1000 {
		sink += i
	}
	return nil
}

var sink int

type outcome struct {
	v   int
	err error
}

// byHand is how a call with a time limit is written without a library.
func byHand(ctx context.Context, timeout time.Duration, f func(context.Context) (int, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := make(chan outcome, 1)
	go func() {
		v, err := f(ctx)
		c <- outcome{v, err}
	}()
	select {
	case o := <-c:
		return o.v, o.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// goAndChannel is the same without a limit.
func goAndChannel(ctx context.Context, f func(context.Context) (int, error)) (int, error) {
	c := make(chan outcome, 1)
	go func() {
		v, err := f(ctx)
		c <- outcome{v, err}
	}()
	o := <-c
	return o.v, o.err
}

func inScope(b *testing.B, f func(ctx context.Context) (int, error)) {
	b.ReportAllocs()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for b.Loop() {
			if v, err := f(ctx); v != 42 || err != nil {
				return errors.New("wrong answer")
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func rooted(b *testing.B, f func(ctx context.Context) (int, error)) {
	b.ReportAllocs()
	ctx := context.Background()
	for b.Loop() {
		if v, err := f(ctx); v != 42 || err != nil {
			b.Fatal("wrong answer")
		}
	}
}

// BenchmarkB1 is Execute and Await with a timeout.
func BenchmarkB1(b *testing.B) {
	ours := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, time.Minute) }
	hand := func(ctx context.Context) (int, error) { return byHand(ctx, time.Minute, answer) }
	b.Run("hand", func(b *testing.B) { rooted(b, hand) })
	b.Run("scope", func(b *testing.B) { inScope(b, ours) })
	b.Run("rooted", func(b *testing.B) { rooted(b, ours) })
}

// BenchmarkB2 is Execute and Await without one.
func BenchmarkB2(b *testing.B) {
	ours := func(ctx context.Context) (int, error) { return async.Execute(ctx, answer).Await(ctx, 0) }
	hand := func(ctx context.Context) (int, error) { return goAndChannel(ctx, answer) }
	b.Run("hand", func(b *testing.B) { rooted(b, hand) })
	b.Run("scope", func(b *testing.B) { inScope(b, ours) })
	b.Run("rooted", func(b *testing.B) { rooted(b, ours) })
}

// BenchmarkB3 is a scope with 1,000 tasks.
func BenchmarkB3(b *testing.B) {
	for _, body := range []struct {
		name string
		f    func(context.Context) error
	}{{"empty", nothing}, {"1us", busy}} {
		b.Run(body.name+"/errgroup", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, ctx := errgroup.WithContext(context.Background())
				for range 1000 {
					g.Go(func() error { return body.f(ctx) })
				}
				if err := g.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(body.name+"/scope", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				err := async.Scope(context.Background(), func(ctx context.Context) error {
					for range 1000 {
						async.Go(ctx, body.f)
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a Group beside the WaitGroup that it takes the place of.
func BenchmarkGroup(b *testing.B) {
	ctx := context.Background()
	b.Run("Go", func(b *testing.B) {
		b.ReportAllocs()
		g := async.NewGroup(ctx)
		for range b.N {
			_ = g.Go(nothing)
		}
		_ = g.Wait(ctx)
	})
	b.Run("WaitGroup.Go", func(b *testing.B) {
		b.ReportAllocs()
		var g sync.WaitGroup
		for range b.N {
			g.Go(func() { _ = nothing(ctx) })
		}
		g.Wait()
	})
	b.Run("1000 Go and Wait", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			g := async.NewGroup(ctx)
			for range 1000 {
				_ = g.Go(nothing)
			}
			_ = g.Wait(ctx)
		}
	})
	b.Run("1000 WaitGroup.Go and Wait", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var g sync.WaitGroup
			for range 1000 {
				g.Go(func() { _ = nothing(ctx) })
			}
			g.Wait()
		}
	})
	b.Run("Open and Stop", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_ = async.NewGroup(ctx).Stop(ctx, nil)
		}
	})
	b.Run("Open, Go and Stop", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			g := async.NewGroup(ctx)
			_ = g.Go(nothing)
			_ = g.Stop(ctx, nil)
		}
	})
}

// memSlack is how much larger than at the start the heap may be, in bytes. The
// planted leak below is found with it.
const memSlack = 4 << 20

// memGrowth returns how much larger the heap is after f, in bytes.
func memGrowth(f func()) int64 {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what has a finalizer or sits in a pool goes in the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f()
	return heap() - before
}

func TestAMillionAwaitsInOneScopeLeaveNothing(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		grown := memGrowth(func() {
			for range 1_000_000 / raceFactor {
				_, _ = async.Execute(ctx, answer).Await(ctx, time.Minute)
			}
		})
		require.Less(t, grown, int64(memSlack))
		return nil
	})
	require.NoError(t, err)
}

func TestAMillionRootedAwaitsLeaveNothing(t *testing.T) {
	grown := memGrowth(func() {
		for range 1_000_000 / raceFactor {
			_, _ = async.Execute(t.Context(), answer).Await(t.Context(), 0)
		}
	})
	require.Less(t, grown, int64(memSlack))
}

func TestAHundredThousandTasksAtOnceLeaveNothing(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		grown := memGrowth(func() {
			gate := make(chan struct{})
			futures := make([]*async.Future[int], 100_000/raceFactor)
			for i := range futures {
				futures[i] = async.Execute(ctx, func(ctx context.Context) (int, error) {
					<-gate
					return 42, nil
				})
			}
			close(gate)
			for _, r := range async.AwaitAll(ctx, 0, futures...) {
				require.Equal(t, 42, r.Value)
			}
		})
		require.Less(t, grown, int64(memSlack)+100_000*1_024, "goroutines' own memory is kept by the runtime")
		return nil
	})
	require.NoError(t, err)
}

// TestExpiredWaitsDoNotPileUp awaits a task that never settles, over and over.
func TestExpiredWaitsDoNotPileUp(t *testing.T) {
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		stop := make(chan struct{})
		stubborn := async.Execute(ctx, func(context.Context) (int, error) {
			<-stop
			return 0, nil
		})
		grown := memGrowth(func() {
			for range 50_000 / raceFactor {
				short, cancel := context.WithCancel(ctx)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = stubborn.Wait(short) })
				cancel()
				wg.Wait()
				_, _ = stubborn.Await(ctx, -1)
			}
		})
		close(stop)
		require.Less(t, grown, int64(memSlack))
		return nil
	})
	require.NoError(t, err)
}

// TestManyScopesWithLimitsLeaveNothing is about timers: an hour's limit must
// not outlive the scope of the wait it was for.
func TestManyScopesWithLimitsLeaveNothing(t *testing.T) {
	const scopes = 20_000 // not fewer with the race detector: the leak must show
	grown := memGrowth(func() {
		for range scopes {
			err := async.Scope(t.Context(), func(ctx context.Context) error {
				_, err := async.Execute(ctx, answer).Await(ctx, time.Hour)
				return err
			})
			require.NoError(t, err)
		}
	})
	require.Less(t, grown, int64(memSlack))
}

// TestAPlantedMemoryLeakIsFound shows that the check can fail.
func TestAPlantedMemoryLeakIsFound(t *testing.T) {
	var kept []*async.Future[[1024]byte]
	grown := memGrowth(func() {
		for range 8_000 { // not fewer with the race detector: the leak must show
			f := async.Execute(t.Context(), func(context.Context) (v [1024]byte, err error) { return v, nil })
			_, _ = f.Await(t.Context(), 0)
			kept = append(kept, f)
		}
	})
	require.Greater(t, grown, int64(memSlack))
	runtime.KeepAlive(kept)
}

// TestAGoTaskTakesTwoAllocations: itself, and the start of its goroutine.
func TestAGoTaskTakesTwoAllocations(t *testing.T) {
	ctx := context.Background()
	const n = 1000
	for name, many := range map[string]func(){
		"scope": func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				for range n {
					async.Go(ctx, nothing)
				}
				return nil
			})
		},
		"group": func() {
			g := async.NewGroup(ctx)
			for range n {
				_ = g.Go(nothing)
			}
			_ = g.Wait(ctx)
		},
	} {
		if a := testing.AllocsPerRun(20, many) / n; a > 2.5 {
			t.Errorf("%s: %v allocations a task", name, a)
		}
	}
}

// countedContext counts how often its Err is asked, which asks its parent's, as
// its Done, which is its own, does not.
type countedContext struct {
	context.Context
	done  chan struct{}
	asked *atomic.Int64
}

func (c countedContext) Done() <-chan struct{} { return c.done }

func (c countedContext) Err() error { c.asked.Add(1); return c.Context.Err() }

func TestContextsOfOnesOwnAreNotAskedMoreOftenThanTheDepth(t *testing.T) {
	const depth = 16
	var asked atomic.Int64
	var down func(ctx context.Context, n int) error
	down = func(ctx context.Context, n int) error {
		if n == 0 {
			asked.Store(0)
			return ctx.Err()
		}
		return async.Scope(countedContext{ctx, make(chan struct{}), &asked}, func(ctx context.Context) error { return down(ctx, n-1) })
	}
	require.NoError(t, down(asynctest.Context(t), depth))
	require.LessOrEqual(t, asked.Load(), int64(2*depth))
}

func TestAContextCostsNoGoroutine(t *testing.T) {
	for _, started := range []string{"a body", "a Go task", "a future", "with a hook", "with a timeout", "under WithValue", "under WithTimeout", "under WithoutCancel"} {
		t.Run(started, func(t *testing.T) {
			require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
				contextStarts[started](ctx, func(ctx context.Context) {
					before := runtime.NumGoroutine()
					var undo []func()
					for range 1000 {
						_, cancel := context.WithCancel(ctx)
						stop := context.AfterFunc(ctx, func() {})
						undo = append(undo, cancel, func() { stop() })
					}
					require.Less(t, goroutines(before+99)-before, 100)
					for _, f := range undo {
						f()
					}
				})
				return nil
			}))
		})
	}
}

func TestAThousandTasksWithContextsInUseCostAGoroutineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			before := runtime.NumGoroutine()
			open := make(chan struct{})
			for range 1000 {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				async.Go(derived, func(ctx context.Context) error {
					defer cancel()
					child, cancel := context.WithCancel(ctx)
					defer cancel()
					select {
					case <-child.Done():
					case <-open:
					}
					return nil
				}, async.Timeout(time.Hour), async.OnAbort(contextHook))
			}
			synctest.Wait()
			require.Less(t, goroutines(before+1099)-before, 1100)
			close(open)
			return nil
		}))
	})
}

// TestContextsDerivedAtEveryLevelCostNoMoreThanTheDepth would not end in a
// lifetime if every level asked its context and its owner, and both asked the
// level above.
func TestContextsDerivedAtEveryLevelCostNoMoreThanTheDepth(t *testing.T) {
	const depth = 200
	derive := map[string]func(context.Context) context.Context{
		"values": func(ctx context.Context) context.Context { return context.WithValue(ctx, levelKey{}, "") },
		"values twice": func(ctx context.Context) context.Context {
			return context.WithValue(context.WithValue(ctx, levelKey{}, ""), levelKey{}, 1)
		},
		"without cancel": context.WithoutCancel,
		"a stranger's":   func(ctx context.Context) context.Context { return strangeContext{ctx} },
		"cancel and values": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			t.Cleanup(cancel)
			return context.WithValue(ctx, levelKey{}, "")
		},
	}
	type way func(ctx context.Context, f func(context.Context) error) error
	ways := map[string]way{
		"Start": func(ctx context.Context, f func(context.Context) error) error {
			_, err := async.Start(ctx, f).Wait(ctx)
			return err
		},
		"Go":    func(ctx context.Context, f func(context.Context) error) error { async.Go(ctx, f); return nil },
		"Scope": func(ctx context.Context, f func(context.Context) error) error { return async.Scope(ctx, f) },
	}
	for name, derive := range derive {
		for how, start := range ways {
			t.Run(name+"/"+how, func(t *testing.T) {
				deepest := make(chan error, 1)
				var down func(ctx context.Context, left int) error
				down = func(ctx context.Context, left int) error {
					if left == 0 {
						deepest <- ctx.Err()
						return nil
					}
					return start(derive(ctx), func(ctx context.Context) error { return down(ctx, left-1) })
				}
				require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { return down(ctx, depth) }))
				require.NoError(t, <-deepest)
			})
		}
	}
}

type levelKey struct{}

// TestADeepChainOfWaitsKeepsItsStacksSmall: what looks up the tree does not
// recurse at every level.
func TestADeepChainOfWaitsKeepsItsStacksSmall(t *testing.T) {
	depth := fewer(2000, 700)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var down func(ctx context.Context, n int) (int, error)
	down = func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			runtime.ReadMemStats(&after)
			return 0, nil
		}
		return async.Execute(ctx, func(ctx context.Context) (int, error) { return down(ctx, n-1) }).Await(ctx, time.Minute)
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { return second(down(ctx, depth)) }))
	require.Less(t, (int(after.StackInuse)-int(before.StackInuse))/depth, 32<<10)
}
