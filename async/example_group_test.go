package async_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

var errServerStopped = errors.New("server stopped")

// A cacheServer is a type with a Start and a Stop.
type cacheServer struct{ group *async.Group }

func startServer(ctx context.Context) *cacheServer {
	s := &cacheServer{async.NewGroup(ctx, async.Name("cache"))}
	_ = s.group.Go(func(ctx context.Context) error { // runs until it is told to stop
		<-ctx.Done()
		fmt.Println("loop:", context.Cause(ctx))
		return nil
	})
	return s
}

func (s *cacheServer) stop(ctx context.Context) error {
	return s.group.Stop(ctx, errServerStopped)
}

// A Group is for what is started in one function and stopped in another.
func ExampleGroup() {
	ctx := context.Background()
	s := startServer(ctx)
	fmt.Println("stop:", s.stop(ctx))
	fmt.Println("again:", s.stop(ctx))
	fmt.Println("late:", errors.Is(s.group.Go(func(context.Context) error { return nil }), async.ErrScopeEnded))
	// Output:
	// loop: server stopped
	// stop: <nil>
	// again: <nil>
	// late: true
}

func ExampleNewGroup() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		uploads := async.NewGroup(ctx, async.Name("uploads"), async.Limit(2))
		for i := range 3 {
			_ = uploads.Go(func(context.Context) error {
				if i == 1 {
					return errors.New("disk full")
				}
				return nil
			})
		}
		return uploads.Wait(ctx)
	})
	fmt.Println(err)
	// Output: disk full
}

func ExampleGroup_Wait() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	for i := range 3 {
		_ = g.Go(func(ctx context.Context) error { return async.Sleep(ctx, time.Duration(i)*time.Millisecond) })
	}
	fmt.Println(g.Wait(ctx))
	// Output: <nil>
}

func ExampleGroup_Stop() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	hurt := make(chan struct{})
	_ = g.Go(func(context.Context) error { <-hurt; return nil }, async.Name("stubborn"))
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	var left *async.StragglerError
	if errors.As(g.Stop(short, errServerStopped), &left) {
		fmt.Println(left.Left[0].Task, "is left")
	}
	close(hurt)
	fmt.Println(g.Stop(ctx, nil))
	// Output:
	// stubborn is left
	// <nil>
}

func ExampleGroup_Cancel() {
	ctx := context.Background()
	g := async.NewGroup(ctx)
	_ = g.Go(func(context.Context) error {
		fmt.Println("first:", g.Cancel(errServerStopped)) // Stop would wait for this task
		fmt.Println("again:", g.Cancel(nil))
		return nil
	})
	fmt.Println(g.Wait(ctx))
	// Output:
	// first: true
	// again: false
	// <nil>
}
