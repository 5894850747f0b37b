package adopting

import (
	"context"
	"iter"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// PingAll pings every host, eight at a time.
func PingAll(ctx context.Context, hosts []string, ping func(context.Context, string) error) error {
	return async.ForEach(ctx, slices.Values(hosts), ping, async.Limit(8))
}

// PingOrStop is PingAll, but the first host that does not answer stops the rest.
func PingOrStop(ctx context.Context, hosts []string, ping func(context.Context, string) error) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		for _, host := range hosts {
			async.Go(ctx, func(ctx context.Context) error { return ping(ctx, host) })
		}
		return nil
	}, async.Limit(8))
}

// Lengths writes each result to its place, so it needs the index.
func Lengths(ctx context.Context, hosts []string, measure func(context.Context, string) (int, error)) ([]int, error) {
	lengths := make([]int, len(hosts))
	err := async.ForEach(ctx, indices(hosts), func(ctx context.Context, i int) (err error) {
		lengths[i], err = measure(ctx, hosts[i])
		return err
	}, async.Limit(8))
	return lengths, err
}

func indices[T any](s []T) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s {
			if !yield(i) {
				return
			}
		}
	}
}
