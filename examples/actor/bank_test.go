package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

// balance is what is on a.
func balance(t *testing.T, ctx context.Context, a *account) money {
	t.Helper()
	m, err := total(ctx, []*account{a})
	require.NoError(t, err)
	return m
}

func TestTransferMovesAllOrNothing(t *testing.T) {
	for _, test := range []struct {
		amount, from, to money
		err              error
	}{
		{4_00, 6_00, 24_00, nil},
		{10_00, 0, 30_00, nil},
		{10_01, 10_00, 20_00, new(shortError)},
		{0, 10_00, 20_00, errAmount},
		{-1, 10_00, 20_00, errAmount},
	} {
		t.Run(test.amount.String(), func(t *testing.T) {
			inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
				a, b := openAccount(ctx, s, "anna", 10_00), openAccount(ctx, s, "ben", 20_00)
				err := transfer(ctx, a, b, test.amount)
				if short := new(shortError); errors.As(test.err, &short) {
					assert.ErrorAs(t, err, &short)
				} else {
					assert.ErrorIs(t, err, test.err)
				}
				assert.Equal(t, test.from, balance(t, ctx, a))
				assert.Equal(t, test.to, balance(t, ctx, b))
				assert.ErrorIs(t, transfer(ctx, a, a, 1), errTheSame)
			})
		})
	}
}

// Transfers go round in both directions: if they took their accounts in the
// order from, to, they would wait for each other for ever.
func TestTransfersInAllDirectionsEndAndLoseNothing(t *testing.T) {
	const customers, transfers = 5, 100
	inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
		var all []*account
		for i := range customers {
			all = append(all, openAccount(ctx, s, fmt.Sprint(i), 10_00))
		}
		var moving sync.WaitGroup
		for i := range customers {
			for _, step := range []int{1, customers - 1} {
				moving.Go(func() {
					for range transfers {
						err := transfer(ctx, all[i], all[(i+step)%customers], 3_00)
						if !errors.As(err, new(*shortError)) {
							assert.NoError(t, err)
						}
					}
				})
			}
		}
		moving.Go(func() {
			for range transfers {
				sum, err := total(ctx, all)
				assert.NoError(t, err)
				assert.Equal(t, money(customers*10_00), sum, "seen between two transfers")
			}
		})
		moving.Wait()
		for _, a := range all {
			assert.GreaterOrEqual(t, balance(t, ctx, a), money(0))
		}
	})
}

// A transfer that is cancelled while it waits for the second account moves
// nothing and gives the first one back.
func TestTransferThatIsCancelledInTimeMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inScope(t, func(ctx context.Context, s *scheduler.Scheduler) {
			a, b := openAccount(ctx, s, "anna", 10_00), openAccount(ctx, s, "ben", 0)
			busy := make(chan struct{})
			require.NoError(t, b.tell(func(*money) { <-busy }))

			stopped, stop := context.WithCancel(ctx)
			result := make(chan error, 1)
			go func() { result <- transfer(stopped, a, b, 1_00) }()
			synctest.Wait() // a waits for b
			stop()
			assert.ErrorIs(t, <-result, context.Canceled)
			assert.Equal(t, money(10_00), balance(t, ctx, a), "a is free although b is busy")
			close(busy)
			assert.Equal(t, money(0), balance(t, ctx, b))
		})
	})
}
