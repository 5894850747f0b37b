package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ambit-go/ambit/scheduler"
)

// money is an amount in cents.
type money int64

func (m money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Sprintf("%s%d.%02d", sign, m/100, m%100)
}

// An account is an actor whose state is its balance.
type account struct {
	*actor[money]
	name string
	rank uint64 // no two accounts have the same
}

var accounts atomic.Uint64

func openAccount(ctx context.Context, s *scheduler.Scheduler, name string, balance money) *account {
	return &account{newActor(ctx, s, name, balance), name, accounts.Add(1)}
}

var (
	errAmount  = errors.New("the amount has to be more than nothing")
	errTheSame = errors.New("a transfer needs two accounts")
)

// A shortError says that there is not enough on an account.
type shortError struct {
	account         string
	balance, wanted money
}

func (e *shortError) Error() string {
	return fmt.Sprintf("%s has %v, which is too little for %v", e.account, e.balance, e.wanted)
}

// enough returns a shortError if there is less than amount. It is called in a task
// of a.
func (a *account) enough(amount money) error {
	if a.state < amount {
		return &shortError{a.name, a.state, amount}
	}
	return nil
}

// transfer moves amount from one account to another, or nothing if there is
// less. Nobody sees one account without the other. If ctx ends meanwhile, the
// transfer has been made or not, as a whole.
func transfer(ctx context.Context, from, to *account, amount money) error {
	switch {
	case amount <= 0:
		return errAmount
	case from == to:
		return errTheSame
	}
	_, err := together(ctx, []*account{from, to}, func() (struct{}, error) {
		if err := from.enough(amount); err != nil {
			return struct{}{}, err
		}
		from.state -= amount
		to.state += amount
		return struct{}{}, nil
	})
	return err
}

// total is what all accounts have at one instant.
func total(ctx context.Context, all []*account) (money, error) {
	return together(ctx, all, func() (sum money, err error) {
		for _, a := range all {
			sum += a.state
		}
		return sum, nil
	})
}

// together runs f while it has all accounts to itself: in a task of the last,
// for which a task of the one before waits, and so on.
//
// Everybody asks the lower rank first, so a task waits only for a higher rank:
// there is no circle, and no deadlock. Two transfers that asked for their
// accounts in the order from, to would wait for each other if they went
// opposite ways, and one would be refused. A task that waits keeps its
// goroutine, so the pool has to be one that lends it: one with TryExecute.
func together[T any](ctx context.Context, all []*account, f func() (T, error)) (T, error) {
	ranked := slices.SortedFunc(slices.Values(all), func(a, b *account) int { return cmp.Compare(a.rank, b.rank) })
	return nested(ctx, slices.Compact(ranked), f)
}

func nested[T any](ctx context.Context, ranked []*account, f func() (T, error)) (T, error) {
	if len(ranked) == 0 {
		return f()
	}
	return ask(ctx, ranked[0].actor, func(ctx context.Context, _ *money) (T, error) {
		return nested(ctx, ranked[1:], f)
	})
}
