package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
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
