package alone_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/alone"
)

func TestALeaseThatCannotBeRenewedIsSkippedAndTheOthersAreNot(t *testing.T) {
	why := errors.New("why")
	renew := func(n int, fails func(i int) bool) ([]locks.RenewResult, error) {
		return alone.Renew(t.Context(), n, 2, func(_ context.Context, i int) (locks.RenewResult, error) {
			if fails(i) {
				return locks.RenewResult{Verdict: locks.Extended}, why
			}
			return locks.RenewResult{Verdict: locks.Extended}, nil
		})
	}
	results, err := renew(4, func(i int) bool { return i == 1 })
	require.NoError(t, err)
	for i, r := range results {
		require.Equal(t, i == 1, r.Verdict == locks.Skipped)
	}
	_, err = renew(4, func(int) bool { return true })
	require.Equal(t, why, err)
	results, err = renew(0, nil)
	require.NoError(t, err)
	require.Empty(t, results)
}
