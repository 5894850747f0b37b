package async_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

func ExampleScope() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done() // a sibling has failed
			fmt.Println("stopped because:", context.Cause(ctx))
			return ctx.Err()
		})
		async.Go(ctx, func(context.Context) error { return errors.New("disk full") })
		return nil
	})
	fmt.Println("scope:", err)
	// Output:
	// stopped because: disk full
	// scope: disk full
}

func ExampleFuture_Await() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		slow := async.Execute(ctx, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, async.Name("slow"))
		_, err := slow.Await(ctx, time.Millisecond)
		fmt.Println("timed out:", errors.Is(err, context.DeadlineExceeded))
		return nil
	})
	// Output: timed out: true
}

func ExampleAwaitAll() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		var squares []*async.Future[int]
		for i := range 4 {
			squares = append(squares, async.Execute(ctx, func(context.Context) (int, error) { return i * i, nil }))
		}
		for _, r := range async.AwaitAll(ctx, time.Minute, squares...) {
			fmt.Println(r.Index, r.Value, r.Err)
		}
		return nil
	})
	// Output:
	// 0 0 <nil>
	// 1 1 <nil>
	// 2 4 <nil>
	// 3 9 <nil>
}

func ExampleOnAbort() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		killed := make(chan struct{}) // stands for a process that knows no context
		run := async.Start(ctx, func(context.Context) error {
			<-killed
			return errors.New("signal: killed")
		}, async.OnAbort(func(context.Context, error) error {
			close(killed)
			return nil
		}), async.Grace(time.Minute))
		_, err := run.Await(ctx, time.Millisecond)
		fmt.Println(errors.Is(err, context.DeadlineExceeded), err != nil)
		return nil
	})
	// Output: true true
}

func ExampleOnExit() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		async.OnExit(ctx, func(_ context.Context, outcome error) error {
			fmt.Println("closed after:", outcome)
			return nil
		})
		return errors.New("out of paper")
	})
	// Output: closed after: out of paper
}

func ExampleNewPromise() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		reply, promise := async.NewPromise[string](ctx)
		time.AfterFunc(time.Millisecond, func() { promise.Resolve("pong") })
		v, err := reply.Await(ctx, time.Minute)
		fmt.Println(v, err)
		return nil
	})
	// Output: pong <nil>
}

func ExampleLimit() {
	running := make(chan struct{}, 2) // would block a third
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for range 10 {
			async.Go(ctx, func(context.Context) error {
				select {
				case running <- struct{}{}:
				default:
					return errors.New("more than two at once")
				}
				<-running
				return nil
			})
		}
		return nil
	}, async.Limit(2))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleShield() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := async.Shield(ctx, time.Second, func(ctx context.Context) error {
		return ctx.Err() // nil: there is time to clean up
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleDaemon() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			fmt.Println(context.Cause(ctx))
			return nil
		}, async.Daemon())
		async.Go(ctx, func(context.Context) error { return nil })
		return nil
	})
	fmt.Println(err)
	// Output:
	// async: dismissed
	// <nil>
}

func ExampleCompleted() {
	v, err := async.Completed("from the cache", nil).Await(context.Background(), 0)
	fmt.Println(v, err)
	// Output: from the cache <nil>
}
