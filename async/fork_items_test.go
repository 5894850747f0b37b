package async_test

import (
	"context"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestItemsAreTasks of their own: what one starts, panics with or leaves is
// its, whoever has done the item before on the same goroutine.
func TestItemsAreTasks(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		for _, limit := range []int{1, 2, 10} {
			var kept atomic.Value
			work := func(ctx context.Context, i int) (int, error) {
				switch i % 8 {
				case 1:
					plantedPanic()
				case 2:
					runtime.Goexit()
				case 3: // something started that fails
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return errItem })
				case 4: // something started that nobody waits for
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
				case 5:
					v, err := async.Execute(ctx, answer).Await(ctx, time.Minute)
					return v, err
				case 6:
					kept.Store(ctx)
					return 0, ctx.Err()
				case 7:
					async.OnExit(ctx, func(context.Context, error) error { return errCancelBoom })
				}
				return i, ctx.Err()
			}
			got, err := async.ForkJoin(ctx, upTo(40), work, async.Limit(limit)).Await(ctx, 0)
			require.NoError(t, err)
			for i, r := range got {
				switch i % 8 {
				case 1:
					require.ErrorIs(t, r.Err, errPlanted)
				case 2:
					require.ErrorIs(t, r.Err, async.ErrGoexit)
				case 3:
					require.ErrorIs(t, r.Err, errItem)
				case 5:
					require.NoError(t, r.Err)
					require.Equal(t, 42, r.Value)
				case 7:
					require.ErrorIs(t, r.Err, errCancelBoom)
				default:
					require.NoError(t, r.Err, "item %d", i)
				}
			}
			require.ErrorIs(t, kept.Load().(context.Context).Err(), context.Canceled, "its context is over")
		}
	})
}

func TestItemTimeout(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		got, err := async.ForkJoin(ctx, []int{1, 9, 2, 9}, square, async.Limit(1), async.ItemTimeout(3*time.Second)).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 9*time.Second, time.Since(start))
		values, errs := partial(got)
		require.Equal(t, []int{1, 0, 4, 0}, values)
		for i, err := range errs {
			if i%2 == 0 {
				require.NoError(t, err)
				continue
			}
			var timeout *async.TimeoutError
			require.ErrorAs(t, err, &timeout)
			require.Equal(t, 3*time.Second, timeout.Limit)
		}
	})
}

// TestSmallItemsAreDoneByAFewGoroutines with a limit.
func TestSmallItemsAreDoneByAFewGoroutines(t *testing.T) {
	goroutines := map[string]bool{}
	note := func(context.Context, int) (int, error) {
		buf := make([]byte, 64)
		goroutines[string(buf[:runtime.Stack(buf, false)])[:20]] = true // one at a time
		return 0, nil
	}
	_, err := async.ForkJoin(t.Context(), upTo(1000), note, async.Limit(1)).Await(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, goroutines, 1)
	clear(goroutines)
	require.NoError(t, async.ForEach(t.Context(), slices.Values(upTo(1000)), func(ctx context.Context, i int) error { _, err := note(ctx, i); return err }, async.Limit(1)))
	require.Len(t, goroutines, 1)
}

// TestAnItemThatIsStoppedKeepsItsOwnWords: of an item that ran out of time both
// are told, that it did and what the handler said about it.
func TestAnItemThatIsStoppedKeepsItsOwnWords(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		poll := func(ctx context.Context, _ int) (int, error) {
			return async.Poll(ctx, async.Every(time.Second), func(ctx context.Context) (int, bool, error) {
				return 0, false, async.Again(io.ErrNoProgress)
			}, async.Grace(time.Second)).Await(ctx, 0)
		}
		got, err := async.ForkJoin(ctx, []int{1}, poll, async.ItemTimeout(3500*time.Millisecond)).Await(ctx, 0)
		require.NoError(t, err)
		var limit *async.TimeoutError
		require.ErrorAs(t, got[0].Err, &limit)
		require.Equal(t, 3500*time.Millisecond, limit.Limit)
		var last *async.PollError[int]
		require.ErrorAs(t, got[0].Err, &last)
		require.Equal(t, 4, last.Attempts)
		require.ErrorIs(t, got[0].Err, io.ErrNoProgress)
	})
}

// TestWhoWaitsForAStoppedTaskIsGivenItsOwnError, although something that it has started
// had something to say, too.
func TestWhoWaitsForAStoppedTaskIsGivenItsOwnError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		own, below := io.ErrNoProgress, io.ErrShortWrite
		says := func(ctx context.Context, err error) error { return &stoppedSaying{err, ctx.Err()} }
		f := async.Start(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return says(ctx, below) })
			<-ctx.Done()
			return says(ctx, own)
		}, async.Timeout(time.Second))
		_, err := f.Await(ctx, 0)
		var said *stoppedSaying
		require.ErrorAs(t, err, &said)
		require.Equal(t, own, said.said)
		require.Len(t, stoppedOf(err), 1)
	})
}

// A stoppedSaying repeats why something was stopped, and says more.
type stoppedSaying struct{ said, stop error }

func (e *stoppedSaying) Error() string { return e.said.Error() + ": " + e.stop.Error() }
func (e *stoppedSaying) Unwrap() error { return e.stop }

func TestMisuseOfForkingPanics(t *testing.T) {
	ctx := t.Context()
	for name, f := range map[string]func(){
		"ForkJoin":           func() { async.ForkJoin[int, int](ctx, nil, nil) },
		"ForEach":            func() { _ = async.ForEach(ctx, slices.Values([]int{1}), nil) },
		"ForEach of nil":     func() { _ = async.ForEach(ctx, nil, func(context.Context, int) error { return nil }) },
		"Map":                func() { async.Map[int, int](ctx, slices.Values([]int{1}), nil) },
		"AsCompleted of nil": func() { async.AsCompleted[int](ctx, nil) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, f) })
	}
}
