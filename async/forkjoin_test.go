package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/require"
)

var errItem = errors.New("bad item")

// upTo returns the numbers from 0 to n-1.
func upTo(n int) []int {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	return items
}

// square takes as many seconds as its item says; a negative one fails.
func square(ctx context.Context, n int) (int, error) {
	d := time.Duration(max(n, -n)) * time.Second
	if err := async.Sleep(ctx, d); err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, fmt.Errorf("%w %d", errItem, n)
	}
	return n * n, nil
}

func TestForkJoinKeepsTheOrder(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 3, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				var opts []async.ForkOption
				if limit > 0 {
					opts = append(opts, async.Limit(limit))
				}
				got, err := async.ForkJoin(ctx, []int{5, 1, 4, -2, 3, 0}, square, opts...).Await(ctx, 0)
				require.NoError(t, err)
				require.Len(t, got, 6)
				for i, n := range []int{5, 1, 4, -2, 3, 0} {
					require.Equal(t, i, got[i].Index)
					if n < 0 {
						require.ErrorIs(t, got[i].Err, errItem)
						continue
					}
					require.NoError(t, got[i].Err)
					require.Equal(t, n*n, got[i].Value)
				}
				got, err = async.ForkJoin(ctx, nil, square, opts...).Await(ctx, 0)
				require.NoError(t, err)
				require.Empty(t, got)
			})
		})
	}
}

// partial returns the values and the errors of results, for comparing.
func partial(results []async.Result[int]) (values []int, errs []error) {
	for _, r := range results {
		values = append(values, r.Value)
		errs = append(errs, r.Err)
	}
	return values, errs
}

func TestForkJoinThatIsCutShortGivesWhatItHas(t *testing.T) {
	for name, test := range map[string]struct {
		opts  []async.ForkOption
		wait  func(ctx context.Context, f *async.Future[[]async.Result[int]]) ([]async.Result[int], error)
		why   error
		after time.Duration
	}{
		"by its own limit": {[]async.ForkOption{async.Timeout(3500 * time.Millisecond)}, nil, context.DeadlineExceeded, 3500 * time.Millisecond},
		"by Cancel": {nil, func(ctx context.Context, f *async.Future[[]async.Result[int]]) ([]async.Result[int], error) {
			_ = async.Sleep(ctx, 3500*time.Millisecond)
			f.Cancel(errCancelBoom)
			return f.Await(ctx, 0)
		}, errCancelBoom, 3500 * time.Millisecond},
		"by an Await that expired": {nil, func(ctx context.Context, f *async.Future[[]async.Result[int]]) ([]async.Result[int], error) {
			none, err := f.Await(ctx, 3500*time.Millisecond)
			if none != nil || !errors.Is(err, context.DeadlineExceeded) {
				return none, err
			}
			return f.Await(ctx, 0)
		}, context.DeadlineExceeded, 3500*time.Millisecond + 1},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				var begun atomic.Int32
				f := async.ForkJoin(ctx, []int{1, 2, 9, 9, 7, 7, 7}, func(ctx context.Context, n int) (int, error) { begun.Add(1); return square(ctx, n) },
					append(test.opts, async.Limit(2))...)
				wait := test.wait
				if wait == nil {
					wait = func(ctx context.Context, f *async.Future[[]async.Result[int]]) ([]async.Result[int], error) {
						return f.Await(ctx, 0)
					}
				}
				got, err := wait(ctx, f)
				require.Equal(t, test.after, time.Since(start))
				require.ErrorIs(t, err, test.why)
				values, errs := partial(got)
				require.Equal(t, []int{1, 4, 0, 0, 0, 0, 0}, values)
				for i, err := range errs {
					if i < 2 {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, test.why, "item %d", i)
					}
				}
				require.EqualValues(t, 4, begun.Load(), "no item is begun after it")
			})
		})
	}
}

// TestACancelledForkJoinSaysSo whatever its items have returned.
func TestACancelledForkJoinSaysSo(t *testing.T) {
	for name, own := range map[string]func(ctx context.Context) error{
		"an echo": func(ctx context.Context) error { return ctx.Err() },
		"more":    func(ctx context.Context) error { return errors.Join(ctx.Err(), errItem) },
		"other":   func(context.Context) error { return errItem },
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				got, err := async.ForkJoin(ctx, []int{0, 1}, func(ctx context.Context, i int) (int, error) {
					if i == 0 {
						return 7, nil
					}
					<-ctx.Done()
					return 0, own(ctx)
				}, async.Timeout(time.Second)).Await(ctx, 0)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 7, got[0].Value)
				require.Error(t, got[1].Err)
			})
		})
	}
}

func TestFailFastForkJoin(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		got, err := async.ForkJoin(ctx, []int{1, 9, -2, 9, 9}, square, async.Limit(2), async.FailFast()).Await(ctx, 0)
		require.ErrorIs(t, err, errItem)
		require.Equal(t, 3*time.Second, time.Since(start))
		values, errs := partial(got)
		require.Equal(t, []int{1, 0, 0, 0, 0}, values)
		require.NoError(t, errs[0])
		for _, err := range errs[1:] {
			require.ErrorIs(t, err, errItem, "that is why the others were stopped")
		}
	})
}

func TestErrorsOfForkJoinThatNobodyTakesAreTheScopes(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1, -2}, square)
			return nil
		}), errItem)
		told := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.ForkJoin(ctx, []int{1, -2}, func(context.Context, int) (int, error) { return panicking(ctx) }, async.Limit(1))
				return nil
			})
		})
		require.ErrorIs(t, told, errPlanted)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.ForkJoin(ctx, []int{1, -2}, square)
			_, err := f.Wait(ctx)
			return err
		}), "taken with the value")
	})
}

// TestItemsHaveTheCauseIfAllWorkersWereWithdrawn: nobody has come for them then.
func TestItemsHaveTheCauseIfAllWorkersWereWithdrawn(t *testing.T) {
	for name, opt := range map[string]async.ScopeOption{
		"from an executor": async.On(executorFunc(func(func()) error { return nil })),
		"from a Limit":     async.Limit(1),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				busy := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) // holds the slot
				f := async.ForkJoin(ctx, []int{1, 2, 3, 4}, square, async.Limit(2))
				f.Cancel(errCancelBoom)
				got, err := f.Join(ctx)
				require.ErrorIs(t, err, errCancelBoom)
				require.Len(t, got, 4)
				for i, r := range got {
					require.Equal(t, i, r.Index)
					require.ErrorIs(t, r.Err, errCancelBoom, "item %d", i)
				}
				busy.Cancel(nil)
				return nil
			}, opt))
		})
	}
}

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

// TestForkingAThousandDeep within one limit.
func TestForkingAThousandDeep(t *testing.T) {
	depth := fewer(1000, 200)
	for _, n := range []int{1, 2, 64} {
		var down func(ctx context.Context, left int) (int, error)
		down = func(ctx context.Context, left int) (int, error) {
			if left == 0 {
				return 0, nil
			}
			switch left % 3 {
			case 0:
				r, err := async.ForkJoin(ctx, []int{left - 1}, down).Await(ctx, 0)
				if err != nil {
					return 0, err
				}
				return r[0].Value + 1, r[0].Err
			case 1:
				sum := 1
				err := async.ForEach(ctx, slices.Values([]int{left - 1}), func(ctx context.Context, left int) error {
					v, err := down(ctx, left)
					sum += v
					return err
				}, async.Limit(1))
				return sum, err
			default:
				sum := 1
				for v, err := range async.Map(ctx, slices.Values([]int{left - 1}), down) {
					if err != nil {
						return 0, err
					}
					sum += v
				}
				return sum, nil
			}
		}
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			v, err := async.Execute(ctx, func(ctx context.Context) (int, error) { return down(ctx, depth) }).Await(ctx, 0)
			require.Equal(t, depth, v)
			return err
		}, async.Limit(n)))
	}
}

// TestParallelMergeSort of 16,000 numbers agrees with package slices and needs
// few goroutines.
func TestParallelMergeSort(t *testing.T) {
	numbers := make([]int, fewer(16_000, 1600))
	for i := range numbers {
		numbers[i] = rand.IntN(1000)
	}
	want := slices.Sorted(slices.Values(numbers))
	for _, n := range []int{1, 2, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			before := runtime.NumGoroutine()
			var most atomic.Int64
			var sort func(ctx context.Context, part []int) ([]int, error)
			sort = func(ctx context.Context, part []int) ([]int, error) {
				if len(part) < 2 {
					most.Store(max(most.Load(), int64(goroutines(before+30*n+300)-before)))
					return part, nil
				}
				halves, err := async.ForkJoin(ctx, [][]int{part[:len(part)/2], part[len(part)/2:]}, sort, async.FailFast()).Await(ctx, 0)
				if err != nil {
					return nil, err
				}
				return merged(halves[0].Value, halves[1].Value), nil
			}
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				got, err := async.Execute(ctx, func(ctx context.Context) ([]int, error) { return sort(ctx, numbers) }).Await(ctx, 0)
				require.Equal(t, want, got)
				return err
			}, async.Limit(n)))
			require.LessOrEqual(t, most.Load(), int64(30*n+300))
			t.Log("goroutines:", most.Load())
		})
	}
}

func merged(a, b []int) []int {
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0] < a[0] {
			a, b = b, a
		}
		out = append(out, a[0])
		a = a[1:]
	}
	return append(append(out, a...), b...)
}
