package async_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

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
