package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A program of several parts that stops, all of it, when one of them has ended.
func ExampleLeader() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { // serves until it is told to stop
			<-ctx.Done()
			fmt.Println("server stops:", context.Cause(ctx))
			return ctx.Err()
		})
		async.Go(ctx, func(ctx context.Context) error {
			_ = async.Sleep(ctx, time.Millisecond)
			fmt.Println("the job is done")
			return nil
		}, async.Leader())
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// the job is done
	// server stops: async: dismissed
	// error: <nil>
}

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

// A failure that another attempt cannot mend is not tried again.
func ExampleFinal() {
	f := async.Start(context.Background(), func(ctx context.Context) error {
		return async.Final(errors.New("wrong password"))
	}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
	_, err := f.Await(context.Background(), time.Minute)
	fmt.Println(err)
	// Output: wrong password
}

// A type that is closed by a channel runs its work in a scope that ends with it.
func ExampleStopOn() {
	errClosed := errors.New("connection closed")
	closing := make(chan struct{})
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, async.Name("reader"))
		close(closing) // by whoever closes the connection
		return nil
	}, async.StopOn(closing, errClosed))
	fmt.Println(errors.Is(err, errClosed), err)
	// Output:
	// true async: scope: connection closed
}

// The work of a request ends with the session that it belongs to, too, and says why.
func ExampleStopWith() {
	errLoggedOut := errors.New("logged out")
	session, logOut := context.WithCancelCause(context.Background())
	request := context.Background()
	err := async.Scope(request, func(ctx context.Context) error {
		logOut(errLoggedOut)
		<-ctx.Done()
		return ctx.Err()
	}, async.StopWith(session))
	fmt.Println(errors.Is(err, errLoggedOut), err)
	// Output:
	// true async: scope: logged out
}

func ExampleWatch() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		record := func(ctx context.Context) (string, error) {
			<-ctx.Done() // records until it is stopped
			return "", errors.New("recording is cut off")
		}
		free := 3 // GB on the disk
		diskSpace := func(context.Context) error {
			if free--; free == 0 {
				return errors.New("disk is full")
			}
			return nil
		}
		video := async.Watch(ctx, record, async.Every(time.Millisecond), diskSpace, async.Name("camera"))
		_, err := video.Await(ctx, time.Minute)
		fmt.Println(err)
		var dog *async.WatchdogError
		fmt.Println(errors.As(err, &dog))
		return nil
	})
	// Output:
	// async: camera: watchdog: disk is full
	// 	recording is cut off
	// true
}

func ExampleHeartbeat() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		frames := 0
		stream := async.Start(ctx, func(ctx context.Context) error {
			for range 3 {
				frames++
				async.Beat(ctx)
			}
			<-ctx.Done() // then the camera hangs
			return ctx.Err()
		}, async.Name("camera"), async.Heartbeat(time.Millisecond))
		_, err := stream.Await(ctx, time.Minute)
		fmt.Println(frames, "frames")
		fmt.Println(err, errors.Is(err, async.ErrNoBeat))
		return nil
	})
	// Output:
	// 3 frames
	// async: watchdog of camera: no heartbeat for 1ms true
}

func ExampleBeat() {
	tables := map[string][]string{"users": {"Ada", "Bob"}, "prices": {"3 EUR", "4 EUR", "9 EUR"}}
	var rows atomic.Int32
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		backup := async.Start(ctx, func(ctx context.Context) error {
			for _, table := range tables {
				async.Go(ctx, func(ctx context.Context) error {
					for range table {
						rows.Add(1)     // copied
						async.Beat(ctx) // counts for the backup, which this is part of
					}
					return nil
				})
			}
			return nil
		}, async.Heartbeat(time.Minute)) // per row, however many there are
		_, err := backup.Await(ctx, 0)
		fmt.Println(rows.Load(), "rows copied:", err)
		return nil
	})
	// Output: 5 rows copied: <nil>
}
