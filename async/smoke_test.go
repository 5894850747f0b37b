package async

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	err := Scope(ctx, func(ctx context.Context) error {
		f := Execute(ctx, func(ctx context.Context) (int, error) { return 42, nil })
		v, err := f.Await(ctx, time.Second)
		fmt.Println(v, err)
		Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		g := Execute(ctx, func(ctx context.Context) (int, error) { time.Sleep(50 * time.Millisecond); return 1, errors.New("late") })
		v, err = g.Await(ctx, time.Millisecond)
		fmt.Println(v, err)
		return errors.New("boom")
	})
	fmt.Println("scope:", err)
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		Scope(ctx, func(ctx context.Context) error {
			Go(ctx, func(ctx context.Context) error { panic("aua") })
			return nil
		})
	}()
	err = Scope(ctx, func(ctx context.Context) error {
		Go(ctx, func(ctx context.Context) error { time.Sleep(200 * time.Millisecond); return nil }, Name("stub"))
		Execute(ctx, func(ctx context.Context) (int, error) { time.Sleep(200 * time.Millisecond); return 1, nil }, Name("stub2"))
		return errors.New("x")
	}, DetachAfter(50*time.Millisecond))
	fmt.Println("scope:", err)
	fmt.Println(Shutdown(ctx))
}

func fibLimit(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return 1, nil
	}
	a := Execute(ctx, func(ctx context.Context) (int, error) { return fibLimit(ctx, n-1) })
	b := Execute(ctx, func(ctx context.Context) (int, error) { return fibLimit(ctx, n-2) })
	x, err := a.Await(ctx, 0)
	if err != nil {
		return 0, err
	}
	y, err := b.Await(ctx, time.Minute)
	return x + y, err
}

func TestLimitSmoke(t *testing.T) {
	for _, n := range []int{1, 2, 64} {
		err := Scope(context.Background(), func(ctx context.Context) error {
			f := Execute(ctx, func(ctx context.Context) (int, error) { return fibLimit(ctx, 16) })
			v, err := f.Await(ctx, 0)
			fmt.Println(n, v, err)
			return err
		}, Limit(n))
		fmt.Println(err)
	}
}
