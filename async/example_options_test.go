package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func ExampleName() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		for _, row := range []string{"apples,3", "pears"} {
			total := async.Execute(ctx, func(context.Context) (string, error) {
				return strings.Split(row, ",")[1], nil
			}, async.Name("sum of "+row))
			n, err := total.Await(ctx, time.Minute)
			var crash *async.PanicError
			if errors.As(err, &crash) {
				fmt.Printf("%s: %v\n", crash.Task, crash.Value)
			} else {
				fmt.Println(n, err)
			}
		}
		return nil
	})
	// Output:
	// 3 <nil>
	// sum of pears: runtime error: index out of range [1] with length 1
}

func ExampleTimeout() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { // a query that takes too long
			_, ok := ctx.Deadline()
			fmt.Println("the query knows a deadline:", ok)
			<-ctx.Done()
			return ctx.Err()
		})
		return nil
	}, async.Name("report"), async.Timeout(time.Millisecond))
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// the query knows a deadline: true
	// async: report: context deadline exceeded (limit 1ms, waited 1ms)
	// true
}

func ExampleHookTimeout() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.OnExit(ctx, func(ctx context.Context, _ error) error {
			<-ctx.Done() // the server does not answer our goodbye
			fmt.Println("connection dropped")
			return ctx.Err()
		})
		return nil
	}, async.Name("session"), async.HookTimeout(time.Millisecond))
	fmt.Println(err)
	// Output:
	// connection dropped
	// async: exit hook of session: context deadline exceeded (limit 1ms, waited 1ms)
}

func ExampleGrace() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		search := async.Execute(ctx, func(ctx context.Context) ([]string, error) {
			found := []string{"ada", "grace"}
			<-ctx.Done() // the rest of the index is slow
			return found, nil
		}, async.Grace(time.Minute))
		found, err := search.Await(ctx, time.Millisecond)
		fmt.Println(found, err) // what there was when time was up
		return nil
	})
	// Output: [ada grace] <nil>
}

func ExampleOnDiscard() {
	client, server := net.Pipe()
	defer server.Close()
	accepted := make(chan struct{})
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		dial := async.Execute(ctx, func(context.Context) (net.Conn, error) {
			<-accepted
			return client, nil
		}, async.OnDiscard(func(conn net.Conn) { fmt.Println("closed the late connection:", conn.Close()) }))
		_, err := dial.Await(ctx, time.Millisecond)
		fmt.Println("too late:", errors.Is(err, context.DeadlineExceeded))
		close(accepted)
		return nil
	})
	_, err := server.Read(make([]byte, 1))
	fmt.Println("server:", err)
	// Output:
	// too late: true
	// closed the late connection: <nil>
	// server: EOF
}

func ExampleObserve() {
	log := async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventEnd {
			fmt.Println(e.Kind, e.Task, e.Err)
		} else {
			fmt.Println(e.Kind, e.Task)
		}
	})
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		fetch := async.Execute(ctx, func(context.Context) (string, error) { return "{", nil }, async.Name("fetch"))
		text, _ := fetch.Await(ctx, time.Minute)
		async.Go(ctx, func(context.Context) error {
			return fmt.Errorf("%q: %w", text, io.ErrUnexpectedEOF)
		}, async.Name("parse"))
		return nil
	}, async.Observe(log))
	// Output:
	// start fetch
	// end fetch <nil>
	// start parse
	// end parse "{": unexpected EOF
}

func ExampleOnStall() {
	client, server := net.Pipe()
	defer server.Close()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error {
			_, err := io.ReadAll(client) // looks at no context
			fmt.Println("reader:", err)
			return nil
		}, async.Name("reader"))
		return errors.New("session expired")
	}, async.OnStall(time.Millisecond, func(e *async.StragglerError) {
		for _, s := range e.Left {
			fmt.Println(s.Task, "still runs, told to stop because:", e.Cause)
		}
		client.Close() // ends the read
	}))
	fmt.Println("scope:", err)
	// Output:
	// reader still runs, told to stop because: session expired
	// reader: io: read/write on closed pipe
	// scope: session expired
}

func ExampleDetachAfter() {
	ctx, _ := asynctest.Root(context.Background()) // for this example only; a program uses the ctx it has
	unmounted := make(chan struct{})
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error {
			<-unmounted // a network disk that hangs
			return nil
		}, async.Name("flush"))
		return errors.New("power is low")
	}, async.Name("backup"), async.DetachAfter(time.Millisecond))
	var left *async.StragglerError
	if errors.As(err, &left) {
		fmt.Printf("%s, so nobody waits for %s\n", left.Cause, left.Left[0].Task)
	}
	fmt.Println("on record:", asynctest.Live(ctx))
	close(unmounted)
	fmt.Println("shutdown:", async.Shutdown(ctx)) // waits for the flush
	// Output:
	// power is low, so nobody waits for flush
	// on record: [backup]
	// shutdown: <nil>
}

// An exit hook counts failures, and not that somebody has told the scope to stop.
func ExampleEndingOf() {
	ctx, stop := context.WithCancel(context.Background())
	for _, body := range []func(ctx context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error { return errors.New("out of paper") },
		func(ctx context.Context) error { stop(); return ctx.Err() },
	} {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(_ context.Context, outcome error) error {
				fmt.Println(async.EndingOf(outcome))
				return nil
			})
			return body(ctx)
		})
	}
	// Output:
	// well
	// failed
	// stopped
}

func ExampleOnPanic() {
	var served atomic.Int32
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for _, request := range []string{"1", "nil", "2"} {
			async.Go(ctx, func(context.Context) error {
				if request == "nil" {
					panic("nothing to serve")
				}
				served.Add(1)
				return nil
			}, async.Name("serve "+request))
		}
		return nil
	}, async.OnPanic(func(p *async.PanicError) error {
		fmt.Println(p.Task, "panicked:", p.Value) // log p.Stack, too
		return nil                                // the others are served
	}))
	fmt.Println(served.Load(), "served,", err)
	// Output:
	// serve nil panicked: nothing to serve
	// 2 served, <nil>
}

func ExampleOnFailure() {
	requests := make(chan string, 3) // stands for a listener
	for _, r := range []string{"GET /", "PUT", "GET /jobs"} {
		requests <- r
	}
	close(requests)
	var served atomic.Int32
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		for r := range requests {
			async.Go(ctx, func(context.Context) error {
				if !strings.HasPrefix(r, "GET ") {
					return fmt.Errorf("bad request %q", r)
				}
				served.Add(1)
				return nil
			})
		}
		return nil
	}, async.OnFailure(func(err error) error {
		fmt.Println("dropped:", err)
		return nil // the others are served
	}))
	fmt.Println(served.Load(), "served,", err)
	// Output:
	// dropped: bad request "PUT"
	// 2 served, <nil>
}

// A fixedPool runs tasks on a few goroutines that stay.
type fixedPool struct {
	tasks   chan func()
	closing chan struct{}
	workers sync.WaitGroup
}

func newFixedPool(workers int) *fixedPool {
	p := &fixedPool{tasks: make(chan func()), closing: make(chan struct{})}
	for range workers {
		p.workers.Go(p.work)
	}
	return p
}

func (p *fixedPool) work() {
	for {
		select {
		case task := <-p.tasks:
			task()
		case <-p.closing:
			return
		}
	}
}

// Execute waits until a goroutine is free. It makes fixedPool an async.Executor.
func (p *fixedPool) Execute(task func()) error {
	select {
	case p.tasks <- task:
		return nil
	case <-p.closing:
		return errors.New("pool is closed")
	}
}

// Close waits for what was taken.
func (p *fixedPool) Close() {
	close(p.closing)
	p.workers.Wait()
}

func ExampleOn() {
	p := newFixedPool(2)
	defer p.Close()
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		busy := make(chan struct{}, 2) // would block a third
		for _, picture := range []string{"cat.jpg", "dog.jpg", "fox.jpg", "owl.jpg"} {
			async.Go(ctx, func(context.Context) error {
				select {
				case busy <- struct{}{}:
					<-busy // resized
					return nil
				default:
					return fmt.Errorf("%s: more than two at once", picture)
				}
			})
		}
		return nil
	}, async.On(p)) // whatever is started in the scope
	fmt.Println("resized:", err)
	// Output: resized: <nil>
}

func ExampleRejectedError() {
	p := newFixedPool(2)
	p.Close() // too early
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		small := async.Execute(ctx, func(context.Context) (string, error) {
			return "small-cat.jpg", nil
		}, async.On(p), async.Name("resize"))
		file, err := small.Await(ctx, time.Minute)
		var refused *async.RejectedError
		if errors.As(err, &refused) {
			fmt.Printf("%q: %s was refused because %v\n", file, refused.Task, refused.Err)
		}
		return nil
	})
	// Output: "": resize was refused because pool is closed
}

// One slot, and three tasks that queue for it: the urgent one is next.
func ExamplePriority() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		started := make(chan struct{})
		async.Go(ctx, func(context.Context) error { <-started; return nil })
		say := func(s string) func(context.Context) error {
			return func(context.Context) error { fmt.Println(s); return nil }
		}
		async.Go(ctx, say("nightly build"), async.Priority(-1))
		async.Go(ctx, say("build of a branch"))
		async.Go(ctx, say("build of a release"), async.Priority(1))
		close(started)
		return nil
	}, async.Limit(1))
	// Output:
	// build of a release
	// build of a branch
	// nightly build
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
