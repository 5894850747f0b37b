package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

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
