// Package alone renews leases one by one, for stores that have no request for many.
package alone

import (
	"context"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// Renew has f renew each of n leases, together of them at the same time. One for which it fails is
// Skipped; if it fails for all, that is the error of the first.
func Renew(
	ctx context.Context, n, together int, f func(ctx context.Context, i int) (locks.RenewResult, error),
) ([]locks.RenewResult, error) {
	results, errs := make([]locks.RenewResult, n), make([]error, n)
	each := func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
	err := async.ForEach(ctx, each, func(ctx context.Context, i int) error {
		results[i], errs[i] = f(ctx, i)
		return nil
	}, async.Limit(together))
	if err != nil {
		return nil, locks.Unavailable(err)
	}
	failed := 0
	for i, err := range errs {
		if err != nil {
			results[i] = locks.RenewResult{Verdict: locks.Skipped}
			failed++
		}
	}
	if failed > 0 && failed == n {
		return nil, errs[0]
	}
	return results, nil
}
