package async_test

import (
	"context"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
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

func TestMapThatIsCutShort(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		for _, endless := range []bool{true, false} {
			short, cancel := context.WithTimeoutCause(ctx, 2500*time.Millisecond, errCancelWhy)
			n := 4
			if endless {
				n = 1 << 30
			}
			pulled := 0
			var values []int
			var errs []error
			for v, err := range async.Map(short, lazily(n, &pulled), func(ctx context.Context, i int) (int, error) { return i, async.Sleep(ctx, time.Second) }, async.Limit(1)) {
				if err == nil {
					values = append(values, v)
				} else {
					errs = append(errs, err)
				}
			}
			cancel()
			require.Equal(t, []int{0, 1}, values)
			require.Len(t, errs, 2, "what was begun, and that there may have been more")
			for _, err := range errs {
				require.ErrorIs(t, err, errCancelWhy)
			}
			require.Equal(t, 3, pulled)
		}
		done, cancel := context.WithCancelCause(ctx)
		cancel(errCancelWhy)
		pulled := 0
		for _, err := range async.Map(done, lazily(5, &pulled), square) {
			require.ErrorIs(t, err, errCancelWhy)
		}
		require.Zero(t, pulled)
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
