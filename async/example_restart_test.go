package async_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A worker that fails now and then is called again. The others in the scope hear
// nothing of it.
func ExampleRestart() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		calls := 0
		async.Go(ctx, func(ctx context.Context) error {
			switch calls++; calls {
			case 1:
				return errors.New("connection lost")
			case 2:
				panic("a bug")
			}
			fmt.Println("call", calls, "ends well")
			return nil
		}, async.Restart(async.RestartPolicy{Interval: async.Backoff(time.Millisecond, time.Second)}))
		return nil
	})
	fmt.Println(err)
	// Output:
	// call 3 ends well
	// <nil>
}

// The third failure within ten seconds is the last.
func ExampleRestartPolicy() {
	f := async.Start(context.Background(), func(ctx context.Context) error {
		return errors.New("connection refused")
	}, async.Name("feed"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 3, Within: 10 * time.Second}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output: async: feed: given up after 3 failures within 10s; last failure: connection refused
}

// A run that has lasted long enough makes the failures before it forgotten.
func ExampleRestartPolicy_healthy() {
	calls := 0
	interval := func(failures int) time.Duration {
		fmt.Println("call", calls, "is failure", failures)
		return time.Millisecond
	}
	f := async.Start(context.Background(), func(ctx context.Context) error {
		switch calls++; calls {
		case 3:
			_ = async.Sleep(ctx, time.Second)
		case 5:
			return nil
		}
		return errors.New("connection lost")
	}, async.Restart(async.RestartPolicy{Interval: interval, Healthy: time.Second}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output:
	// call 1 is failure 1
	// call 2 is failure 2
	// call 3 is failure 1
	// call 4 is failure 2
	// <nil>
}

// What another attempt cannot mend is not tried again.
func ExampleFinal() {
	f := async.Start(context.Background(), func(ctx context.Context) error {
		return async.Final(errors.New("wrong password"))
	}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output: wrong password
}
