package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/batch"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

// A program with a loop and a server, as it is written in a function main.
func ExampleMain() {
	main := func() {
		service.Main(func(ctx context.Context) error {
			l, err := net.Listen("tcp", ":8080")
			if err != nil {
				return err
			}
			return service.Run(ctx, []service.Service{
				{Name: "loop", Run: func(ctx context.Context) error {
					_, err := async.Repeat(ctx, async.Every(time.Minute), sweep).Join(ctx)
					return err
				}},
				service.HTTP("http", l, &http.Server{}),
			})
		}, service.Grace(10*time.Second))
	}
	_ = main
}

func sweep(context.Context) error { return nil }

// A program that does the work of one command ends as that does.
func ExampleWithStatus() {
	run := func(ctx context.Context) error {
		result, err := proc.Run(ctx, proc.Command{Name: "lint", Args: []string{"sh", "-c", "exit 3"}})
		return service.WithStatus(err, result.Status())
	}
	_ = func() { service.Main(run) } // in the function main: the exit status is 3
	err := run(context.Background())
	fmt.Println(err)
	fmt.Println(err.(interface{ ExitStatus() int }).ExitStatus())
	// Output:
	// lint: exit status 3
	// 3
}

// One Ctrl-C is one signal, also where timeout or npm sends it on. Nothing but a second one
// ends the drain.
func ExampleDebounce() {
	run := func(ctx context.Context) error {
		return service.Run(ctx, []service.Service{{Name: "sweeper", Run: sweep}}, service.Grace(service.Forever))
	}
	_ = func() { service.Main(run, service.Debounce(100*time.Millisecond)) } // in the function main
}

// A batch that a server writes to is flushed when the server has answered its last request.
func ExampleResource() {
	ctx, stop := context.WithCancelCause(context.Background())
	var lines *batch.Batch[string]
	err := service.Run(ctx, []service.Service{
		service.Resource("journal", func(ctx context.Context) error {
			lines = batch.New(ctx, func(_ context.Context, some []string) error {
				fmt.Println("written:", some)
				return nil
			})
			return nil
		}),
		{
			Name: "server",
			Run: func(ctx context.Context) error {
				stop(errors.New("the program is told to stop"))
				<-service.Draining(ctx)
				return lines.Add(ctx, "accepted before") // it is open
			},
			Drain: func(context.Context) error { return nil },
		},
	})
	fmt.Println(err)
	// Output:
	// written: [accepted before]
	// <nil>
}

func ExampleRun() {
	ctx, stop := context.WithCancelCause(context.Background())
	err := service.Run(ctx, []service.Service{
		{
			Name:    "first",
			Startup: time.Minute,
			Run: func(ctx context.Context) error {
				fmt.Println("first is ready")
				service.Ready(ctx)
				<-ctx.Done()
				fmt.Println("first ends")
				return ctx.Err()
			},
		},
		{
			Name: "second",
			Run: func(ctx context.Context) error {
				fmt.Println("second runs")
				stop(errors.New("enough"))
				<-ctx.Done()
				fmt.Println("second ends:", context.Cause(ctx))
				return ctx.Err()
			},
		},
	})
	fmt.Println(err)
	// Output:
	// first is ready
	// second runs
	// second ends: enough
	// first ends
	// <nil>
}

// The next service is started when the cache is warm, and the run fails if that takes a minute.
func ExampleReady() {
	ctx, stop := context.WithCancel(context.Background())
	err := service.Run(ctx, []service.Service{
		{Name: "cache", Startup: time.Minute, Run: func(ctx context.Context) error {
			fmt.Println("warm")
			service.Ready(ctx)
			<-ctx.Done()
			return nil
		}},
		{Name: "server", Run: func(ctx context.Context) error {
			fmt.Println("serves")
			stop()
			<-ctx.Done()
			return nil
		}},
	})
	fmt.Println(err)
	// Output:
	// warm
	// serves
	// <nil>
}

// Behind a load balancer: it is told for 5 s before the first service drains, and all have 25 s then. A service that does not
// come back within 10 s after that is named, and left behind.
func ExampleGrace() {
	run := func(ctx context.Context) error {
		return service.Run(ctx, []service.Service{{Name: "sweeper", Run: sweep}},
			service.Delay(5*time.Second), service.Grace(25*time.Second), service.GiveUp(10*time.Second))
	}
	_ = run
}

// A server goes on to serve while balancers notice. It ends before the hour is over, and so does the delay.
func ExampleDelay() {
	ctx, stop := context.WithCancel(context.Background())
	err := service.Run(ctx, []service.Service{{Name: "server", Startup: time.Minute, Run: func(ctx context.Context) error {
		service.Ready(ctx)
		stop()
		<-service.Draining(ctx)
		fmt.Println("ready:", service.IsReady(ctx), "stopped:", ctx.Err())
		return nil
	}}}, service.Delay(time.Hour))
	fmt.Println(err)
	// Output:
	// ready: false stopped: <nil>
	// <nil>
}

// A service that ignores its ctx is left behind, and named.
func ExampleGiveUp() {
	ctx, stop := context.WithCancel(context.Background())
	release := make(chan struct{})
	err := service.Run(ctx, []service.Service{{Name: "deaf", Run: func(context.Context) error {
		stop()
		<-release
		return nil
	}}}, service.Grace(0), service.GiveUp(0))
	if left := new(async.StragglerError); errors.As(err, &left) {
		fmt.Println(left.Left[0].Task)
	}
	close(release)
	// Output: service deaf
}

// A service that is told to stop by a signal may ask which.
func ExampleSignalError() {
	loop := func(ctx context.Context) error {
		<-ctx.Done()
		if by := new(service.SignalError); errors.As(context.Cause(ctx), &by) {
			fmt.Println("stopped by", by.Signal, "with exit status", by.ExitStatus())
		}
		return nil
	}
	ctx, stop := context.WithCancelCause(context.Background())
	stop(&service.SignalError{Signal: os.Interrupt}) // as Main does
	fmt.Println(loop(ctx))
	// Output:
	// stopped by interrupt with exit status 130
	// <nil>
}

// Failures that were mended go to a log of the program's own; Log(nil) is quiet.
func ExampleLog() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	runs := 0
	restart := async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)})
	err := service.Run(context.Background(), []service.Service{{
		Name: "worker", MayEnd: true, Options: []async.TaskOption{restart},
		Run: func(context.Context) error {
			if runs++; runs == 1 {
				return errors.New("connection lost")
			}
			return nil
		},
	}}, service.Log(log))
	fmt.Println(runs, err)
	// Output:
	// level=WARN
	// 2 <nil>
}

func ExampleHTTP() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	run := async.Start(context.Background(), func(context.Context) error {
		return service.Run(ctx, []service.Service{service.HTTP("http", l, &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				stop() // the request that it handles goes on
				_, _ = io.WriteString(w, "hello")
			}),
		})})
	})
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	_, err = run.Join(context.Background())
	fmt.Println(string(body), err)
	// Output: hello <nil>
}

// A loop that takes jobs, and at the end takes no more and finishes what it has.
func ExampleDraining() {
	jobs := make(chan string, 1)
	jobs <- "job 1"
	ctx, stop := context.WithCancel(context.Background())
	err := service.Run(ctx, []service.Service{{
		Name: "loop",
		Run: func(ctx context.Context) error {
			for {
				select {
				case job := <-jobs:
					stop()
					<-service.Draining(ctx) // while it works
					fmt.Println(job, "done:", ctx.Err())
				case <-service.Draining(ctx):
					return nil
				}
			}
		},
		Drain: func(context.Context) error { return nil }, // or ctx would be cancelled
	}})
	fmt.Println(err)
	// Output:
	// job 1 done: <nil>
	// <nil>
}

// A handler that tells a load balancer whether to send requests here.
func ExampleIsReady() {
	health := func(w http.ResponseWriter, r *http.Request) {
		if !service.IsReady(r.Context()) {
			http.Error(w, "not ready, or draining", http.StatusServiceUnavailable)
		}
	}
	http.HandleFunc("/ready", health)
}

// Clean-up that goes on in peace, unless somebody is in a hurry.
func ExampleHurry() {
	_ = func(ctx context.Context) error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(service.Hurry(ctx), 10*time.Second)
		defer cancel()
		return upload(ctx)
	}
}

func upload(context.Context) error { return nil }
