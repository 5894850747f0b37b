package async_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestLeavingALoopJoins in every way that there is.
func TestLeavingALoopJoins(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, results iter.Seq2[int, error]) error{
		"break": func(t *testing.T, results iter.Seq2[int, error]) error {
			for range results {
				break
			}
			return nil
		},
		"return": func(t *testing.T, results iter.Seq2[int, error]) error {
			for _, err := range results {
				return err
			}
			return nil
		},
		"panic": func(t *testing.T, results iter.Seq2[int, error]) error {
			defer func() { require.Equal(t, "out", recover(), "its own value") }()
			for range results {
				panic("out")
			}
			return nil
		},
		"Goexit": func(t *testing.T, results iter.Seq2[int, error]) error {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range results {
					runtime.Goexit()
				}
			}()
			<-done
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var running atomic.Int32
				var mu sync.Mutex
				var causes []error
				pulled := 0
				results := async.Map(ctx, lazily(100, &pulled), func(ctx context.Context, i int) (int, error) {
					running.Add(1)
					defer running.Add(-1)
					if i == 0 {
						time.Sleep(time.Second) // so that the others have begun
						return 0, nil
					}
					<-ctx.Done()
					mu.Lock()
					causes = append(causes, context.Cause(ctx))
					mu.Unlock()
					time.Sleep(time.Duration(i) * time.Second)
					return 0, errItem
				}, async.Limit(4))
				start := time.Now()
				require.NoError(t, leave(t, results))
				require.Zero(t, running.Load(), "joined before the statement ends")
				require.Greater(t, time.Since(start), time.Second)
				require.NotEmpty(t, causes)
				for _, err := range causes {
					require.Equal(t, async.ErrDecided, err)
				}
				require.LessOrEqual(t, pulled, 5)
			})
		})
	}
}

func TestAPanicThatWasNotYieldedIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for _, early := range []bool{false, true} {
			told := panicOrError(func() error {
				for range async.Map(ctx, slices.Values(upTo(3)), func(ctx context.Context, i int) (int, error) {
					switch {
					case i == 0:
						time.Sleep(time.Second)
					case !early:
						<-ctx.Done()
						plantedPanic()
					default:
						plantedPanic()
					}
					return i, nil
				}) {
					break
				}
				return nil
			})
			require.ErrorIs(t, told, errPlanted)
		}
	})
}

func TestALoopOnAnEndedScope(t *testing.T) {
	var kept context.Context
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }))
	pulled := 0
	for _, err := range async.Map(kept, lazily(5, &pulled), square) {
		require.ErrorIs(t, err, async.ErrScopeEnded)
	}
	require.ErrorIs(t, async.ForEach(kept, lazily(5, &pulled), func(context.Context, int) error { return nil }), async.ErrScopeEnded)
	require.Zero(t, pulled)
}

// TestAnObserverThatFailsIsHeardWhenALoopIsLeft: the loop has no place for its
// error, so the root is told.
func TestAnObserverThatFailsIsHeardWhenALoopIsLeft(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = write
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		for range async.Map(ctx, slices.Values(upTo(3)), func(context.Context, int) (int, error) { return 0, nil }, async.Limit(1)) {
			break
		}
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventEnd {
			panic(errPlanted)
		}
	})))
	os.Stderr = stderr
	require.NoError(t, write.Close())
	told, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Contains(t, string(told), errPlanted.Error())
}

// endless yields 0, 1, 2 and so on until it is told to stop.
func endless(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

// TestAnEndlessSequenceEndsWithItsContext, and says why, however its context is
// cancelled and whatever its items were doing just then.
func TestAnEndlessSequenceEndsWithItsContext(t *testing.T) {
	touch := func(ctx context.Context, i int) (int, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Microsecond):
		}
		return i, nil
	}
	loops := map[string]func(ctx context.Context, stop func()) error{
		"ForEach": func(ctx context.Context, stop func()) error {
			return async.ForEach(ctx, endless, func(ctx context.Context, i int) error {
				if i == 5 {
					go stop()
				}
				_, err := touch(ctx, i)
				return err
			}, async.Limit(2))
		},
		"Map": func(ctx context.Context, stop func()) (last error) {
			for i, err := range async.Map(ctx, endless, touch, async.Limit(2)) {
				if i == 5 {
					go stop()
				}
				last = err
			}
			return last
		},
		"AsCompleted": func(ctx context.Context, stop func()) (last error) {
			var tasks iter.Seq[func(context.Context) (int, error)] = func(yield func(func(context.Context) (int, error)) bool) {
				for i := 0; yield(func(ctx context.Context) (int, error) { return touch(ctx, i) }); i++ {
				}
			}
			for i, r := range async.AsCompleted(ctx, tasks, async.Limit(2)) {
				if i == 5 {
					go stop()
				}
				last = r.Err
			}
			return last
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			for range fewer(5000, 100) {
				ctx, stop := context.WithCancelCause(t.Context())
				require.ErrorIs(t, loop(ctx, func() { stop(errCancelWhy) }), errCancelWhy)
				stop(nil)

				err := async.Scope(t.Context(), func(ctx context.Context) error {
					return loop(ctx, func() { async.Go(ctx, func(context.Context) error { return errCancelWhy }) })
				})
				require.ErrorIs(t, err, errCancelWhy)
			}
		})
	}
}

// TestASequenceThatPanicsOrExits joins what was begun, and goes on as it was.
func TestASequenceThatPanicsOrExits(t *testing.T) {
	var running atomic.Int32
	item := func(ctx context.Context, i int) (int, error) {
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		time.Sleep(time.Second)
		return i, nil
	}
	bad := func(end func()) iter.Seq[int] {
		return func(yield func(int) bool) {
			if yield(0) && yield(1) {
				end()
			}
		}
	}
	loops := map[string]func(ctx context.Context, items iter.Seq[int]) error{
		"ForEach": func(ctx context.Context, items iter.Seq[int]) error {
			return async.ForEach(ctx, items, func(ctx context.Context, i int) error { _, err := item(ctx, i); return err }, async.Limit(3))
		},
		"Map": func(ctx context.Context, items iter.Seq[int]) error {
			for range async.Map(ctx, items, item, async.Limit(3)) {
			}
			return nil
		},
		"AsCompleted": func(ctx context.Context, items iter.Seq[int]) error {
			tasks := func(yield func(func(context.Context) (int, error)) bool) {
				for i := range items {
					if !yield(func(ctx context.Context) (int, error) { return item(ctx, i) }) {
						return
					}
				}
			}
			for range async.AsCompleted(ctx, tasks, async.Limit(3)) {
			}
			return nil
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.ErrorIs(t, panicOrError(func() error { return loop(ctx, bad(plantedPanic)) }), errPlanted)
				require.Zero(t, running.Load(), "joined")

				came := make(chan bool, 1)
				go func() {
					back := false
					defer func() { came <- back }()
					_ = loop(ctx, bad(runtime.Goexit))
					back = true
				}()
				require.False(t, <-came, "it went on to exit")
				require.Zero(t, running.Load(), "joined")
			})
		})
	}
}

func oneAndTwo(<-chan struct{}) iter.Seq[int] { return slices.Values([]int{1, 2}) }

// secondPanics returns what is done with one and two: two closes second, and
// panics when it is told to stop; one returns once two has begun.
func secondPanics(second chan struct{}) func(ctx context.Context, i int) (int, error) {
	return func(ctx context.Context, i int) (int, error) {
		if i == 1 {
			<-second
			return 1, nil
		}
		close(second)
		<-ctx.Done()
		panic(io.EOF)
	}
}

// TestALoopsPanicGoesOnAsItWas, as that of a body, whatever its items do: one
// that panics when it is told to stop comes second, and is told to the root.
func TestALoopsPanicGoesOnAsItWas(t *testing.T) {
	for name, tc := range map[string]struct {
		items func(second <-chan struct{}) iter.Seq[int]
		left  func()
		gets  any
	}{
		"by its body": {oneAndTwo, func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"by its sequence": {func(second <-chan struct{}) iter.Seq[int] {
			return func(yield func(int) bool) {
				_ = yield(1) && yield(2)
				<-second
				panic(http.ErrAbortHandler)
			}
		}, func() {}, http.ErrAbortHandler},
		"by break": {oneAndTwo, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root, check := asynctest.Root(context.Background())
			second := make(chan struct{})
			value := recovered(func() {
				for range async.Map(root, tc.items(second), secondPanics(second)) {
					if tc.left == nil {
						break
					}
					tc.left()
				}
			})
			if lost := check(); tc.gets != nil {
				require.Equal(t, tc.gets, value)
				require.ErrorIs(t, lost, io.EOF)
			} else {
				require.ErrorIs(t, value.(error), io.EOF)
				require.NoError(t, lost)
			}
		})
	}
}

// TestAPanicErrorThatLeavesALoopGoesOnAsItWas: what was beside it the root is told.
func TestAPanicErrorThatLeavesALoopGoesOnAsItWas(t *testing.T) {
	ctx, check := asynctest.Root(t.Context())
	_, first := async.Start(ctx, func(context.Context) error { panic(errPlanted) }).Await(ctx, 0)
	value := recovered(func() {
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			panic(first)
		}
	})
	require.Equal(t, any(first), value)
	require.ErrorIs(t, check(), io.EOF)
}

// TestALoopThatIsLeftByGoexitRaisesWhatPanicked, as a Scope does.
func TestALoopThatIsLeftByGoexitRaisesWhatPanicked(t *testing.T) {
	ctx := asynctest.Context(t)
	got := make(chan any)
	go func() {
		defer func() { got <- recover() }()
		for range async.Map(ctx, oneAndTwo(nil), secondPanics(make(chan struct{}))) {
			runtime.Goexit()
		}
	}()
	require.ErrorIs(t, (<-got).(error), io.EOF)
}
