package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/lease"
)

// yes is a store that grants everything.
func yes(context.Context, []lease.Renewal[string]) ([]error, error) { return nil, nil }

// holding calls f with a lease of a minute, and the clock of its keeper.
func holding(f func(ctx context.Context, l *lease.Lease, clock *lease.Clock), opts ...lease.LeaseOption) {
	clock := lease.NewClock()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, yes, lease.WithClock(clock))
		l, err := k.Keep("key", lease.Term{Granted: k.Now(), Length: time.Minute}, opts...)
		if err != nil {
			return err
		}
		f(ctx, l, clock)
		return l.Release(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
}

func ExampleNewKeeper() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, func(ctx context.Context, batch []lease.Renewal[string]) ([]error, error) {
			return nil, nil // UPDATE ... WHERE key = ANY($1): one call for all of batch
		}, lease.Most(1000), lease.Name("locks"))
		l, err := k.Keep("key", lease.Term{Granted: k.Now(), Length: 15 * time.Second})
		if err != nil {
			return err
		}
		fmt.Println("held:", l.Err() == nil)
		return l.Release(ctx)
	})
	fmt.Println(err)
	// Output:
	// held: true
	// <nil>
}

func ExampleKeeper_Keep() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		clock := lease.NewClock()
		k := lease.NewKeeper(ctx, yes, lease.WithClock(clock))
		sent := k.Now()
		clock.Suspend(time.Minute) // the request takes that long
		_, err := k.Keep("key", lease.Term{Granted: sent, Length: 15 * time.Second})
		fmt.Println(err)
		return nil
	})
	// Output: lease: the term is over
}

func ExampleKeeper_Now() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, yes)
		term := lease.Term{Granted: k.Now(), Length: time.Minute} // Now comes before the request
		fmt.Println(k.Now() >= term.Granted)
		return nil
	})
	// Output: true
}

func ExampleLease_Run() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		err := l.Run(ctx, func(ctx context.Context) error {
			clock.Suspend(time.Hour) // the lid of the laptop is shut
			fmt.Println(ctx.Err())
			return nil
		})
		fmt.Println(errors.Is(err, lease.ErrOver))
	})
	// Output:
	// context canceled
	// true
}

func ExampleLease_Context() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		ctx, stop := l.Context(ctx)
		defer stop()
		fmt.Println(ctx.Err())
		clock.Suspend(time.Hour)
		fmt.Println(context.Cause(ctx))
	})
	// Output:
	// <nil>
	// lease: the term is over
}

func ExampleLease_Err() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		for _, row := range []string{"a", "b"} {
			if err := l.Err(); err != nil { // before each write
				fmt.Println(err)
				return
			}
			fmt.Println("write", row)
			clock.Suspend(time.Hour)
		}
	})
	// Output:
	// write a
	// lease: the term is over
}

func ExampleLease_End() {
	holding(func(ctx context.Context, l *lease.Lease, _ *lease.Clock) {
		// The work is done; its result counts if the holder has believed until here.
		fmt.Println(l.End())
		fmt.Println(l.Err()) // contexts are done; the keeper renews until Release
	})
	// Output:
	// <nil>
	// lease: ended
}

func ExampleLease_Release() {
	holding(func(ctx context.Context, l *lease.Lease, _ *lease.Clock) {
		fmt.Println(l.Release(ctx)) // no renewal is on its way any more: give back now
	})
	// Output: <nil>
}

func ExampleLease_Extend() {
	holding(func(ctx context.Context, l *lease.Lease, _ *lease.Clock) {
		fmt.Println(l.Extend(ctx, time.Hour), l.Remaining() > 59*time.Minute)
	})
	// Output: <nil> true
}

func ExampleLease_Remaining() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		fmt.Println(l.Remaining() <= 57400*time.Millisecond)
		clock.Suspend(time.Minute)
		fmt.Println(l.Remaining())
	})
	// Output:
	// true
	// 0s
}

func ExampleLease_Term() {
	holding(func(ctx context.Context, l *lease.Lease, _ *lease.Clock) {
		t := l.Term()
		fmt.Println(t.Length, t.End()-t.Believed())
	})
	// Output: 1m0s 2.6s
}

func ExampleCheck() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		ctx, stop := l.Context(ctx)
		defer stop()
		ctx = context.WithoutCancel(ctx) // for what has to be cleaned up
		clock.Suspend(time.Hour)
		fmt.Println(ctx.Err())
		fmt.Println(lease.Check(ctx))
	})
	// Output:
	// <nil>
	// lease: the term is over
}

type lockError struct {
	key string
	err error
}

func (e *lockError) Error() string { return "lock " + e.key + ": " + e.err.Error() }
func (e *lockError) Unwrap() error { return e.err }

func ExampleCauseOf() {
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		clock.Suspend(time.Hour)
		fmt.Println(l.Err(), errors.Is(l.Err(), lease.ErrOver))
	}, lease.CauseOf(func(err error) error { return &lockError{"invoice/42", err} }))
	// Output: lock invoice/42: lease: the term is over true
}

func ExampleOnLoss() {
	told := make(chan error, 1)
	holding(func(ctx context.Context, l *lease.Lease, clock *lease.Clock) {
		clock.Suspend(time.Hour)
		_ = l.Err()
		fmt.Println(<-told)
	}, lease.OnLoss(func(err error) { told <- err }))
	// Output: lease: the term is over
}

func ExampleFixed() {
	holding(func(ctx context.Context, l *lease.Lease, _ *lease.Clock) {
		fmt.Println(l.Remaining() > 0) // for what is left of the minute, and no longer
	}, lease.Fixed())
	// Output: true
}

// A library that has leases of its own, whatever the ctx of its callers is.
func ExampleUnscoped() {
	ctx, cancel := context.WithCancel(context.Background())
	k := lease.NewKeeper(ctx, yes, lease.Unscoped())
	cancel()
	l, err := k.Keep("key", lease.Term{Granted: k.Now(), Length: time.Minute})
	fmt.Println(err, l.Err(), l.Release(context.Background()))
	// Output: <nil> <nil> <nil>
}

func ExampleWithClock() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		clock := lease.NewClock() // one for all keepers of a program
		k := lease.NewKeeper(ctx, yes, lease.WithClock(clock))
		fmt.Println(clock.Now() <= k.Now())
		return nil
	})
	// Output: true
}

// The clock of a program that compares times of its own with those of leases.
func ExampleNewClock() {
	clock := lease.NewClock()
	begun := clock.Now()
	fmt.Println(begun >= time.Second, clock.Now() >= begun)
	// Output: true true
}

// A store that renews one thing a call.
func ExampleMost() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, func(_ context.Context, batch []lease.Renewal[string]) ([]error, error) {
			fmt.Println("renew", batch[0].Of, "for", batch[0].Length)
			return nil, nil
		}, lease.Most(1))
		l, err := k.Keep("report", lease.Term{Granted: k.Now(), Length: time.Hour})
		if err != nil {
			return err
		}
		return l.Extend(ctx, 2*time.Hour) // at once, not when it is due
	})
	// Output: renew report for 2h0m0s
}

// The tasks of a keeper are seen while they renew.
func ExampleName() {
	seen := make(chan string, 1)
	renew := func(context.Context, []lease.Renewal[string]) ([]error, error) {
		for _, task := range asynctest.Live(context.Background()) {
			if strings.HasPrefix(task, "keeper of locks") {
				select {
				case seen <- task:
				default:
				}
			}
		}
		return nil, nil
	}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		k := lease.NewKeeper(ctx, renew, lease.Name("keeper of locks"))
		l, err := k.Keep("report", lease.Term{Granted: k.Now(), Length: time.Hour})
		if err != nil {
			return err
		}
		k.RenewNow()
		fmt.Println(strings.Cut(<-seen, ":"))
		return l.Release(ctx)
	})
	// Output: keeper of locks  renewal true
}

func ExampleClock_Suspend() {
	clock := lease.NewClock()
	before := clock.Now()
	clock.Suspend(time.Hour) // in tests
	fmt.Println(clock.Now()-before >= time.Hour, clock.Suspended() >= time.Hour)
	// Output: true true
}

func ExampleMargin() {
	for _, length := range []time.Duration{time.Second, 15 * time.Second, time.Hour} {
		fmt.Println(length, lease.Margin(length))
	}
	// Output:
	// 1s 110ms
	// 15s 1.65s
	// 1h0m0s 38s
}

// A program with a loop of its own takes the times from the term.
func ExampleTerm() {
	t := lease.Term{Granted: time.Minute, Length: 20 * time.Second}
	_, due := t.Renewal(0)
	fmt.Println("renew at", due, "and wait for", t.Patience(due))
	fmt.Println("after a failure at", t.Again(due))
	fmt.Println("believe until", t.Believed(), "of", t.End())
	// Output:
	// renew at 1m6s and wait for 3.333333333s
	// after a failure at 1m7.666666666s
	// believe until 1m17.8s of 1m20s
}
