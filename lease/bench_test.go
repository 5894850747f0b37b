package lease

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
)

// bench calls f with a keeper of n leases, whose store grants everything.
func bench(b *testing.B, n int, f func(ctx context.Context, k *Keeper[int], l *Lease)) {
	b.ReportAllocs()
	err := async.Scope(b.Context(), func(ctx context.Context) error {
		k := NewKeeper(ctx, func(context.Context, []Renewal[int]) ([]error, error) { return nil, nil })
		var last *Lease
		for i := range n {
			l, err := k.Keep(i, Term{Granted: k.Now(), Length: 24 * time.Hour})
			if err != nil {
				return err
			}
			last = l
		}
		f(ctx, k, last)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkErr(b *testing.B) {
	bench(b, 1, func(_ context.Context, _ *Keeper[int], l *Lease) {
		for b.Loop() {
			_ = l.Err()
		}
	})
}

func BenchmarkContextErr(b *testing.B) {
	bench(b, 1, func(ctx context.Context, _ *Keeper[int], l *Lease) {
		on, stop := l.Context(ctx)
		defer stop()
		for b.Loop() {
			_ = on.Err()
		}
	})
}

func BenchmarkKeepAndRelease(b *testing.B) {
	bench(b, 1, func(ctx context.Context, k *Keeper[int], _ *Lease) {
		for b.Loop() {
			l, err := k.Keep(1, Term{Granted: k.Now(), Length: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			_ = l.Release(ctx)
		}
	})
}

// BenchmarkRenew renews ten thousand leases at a time.
func BenchmarkRenew(b *testing.B) {
	bench(b, 10_000, func(ctx context.Context, k *Keeper[int], _ *Lease) {
		for b.Loop() {
			k.RenewNow()
			k.look()
			k.mu.Lock()
			calls := slices.Clone(k.tasks)
			k.mu.Unlock()
			for _, c := range calls {
				_, _ = c.Wait(ctx)
			}
		}
	})
}
