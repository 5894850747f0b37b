package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
)

func ExampleExecute() {
	fetchUser := func(context.Context) (string, error) { return "Ada", nil }
	fetchOrders := func(context.Context) ([]int, error) { return nil, errors.New("503 from the order service") }
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		user := async.Execute(ctx, fetchUser)
		orders := async.Execute(ctx, fetchOrders) // runs beside it
		name, err := user.Await(ctx, time.Minute)
		if err != nil {
			return err
		}
		if _, err := orders.Await(ctx, time.Minute); err != nil {
			fmt.Println("without orders:", err) // told here, so it does not fail the scope
		}
		fmt.Println("hello", name)
		return nil
	})
	fmt.Println("scope:", err)
	// Output:
	// without orders: 503 from the order service
	// hello Ada
	// scope: <nil>
}

func ExampleStart() {
	sendReceipt := func(context.Context) error { return errors.New("mailbox is full") }
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		receipt := async.Start(ctx, sendReceipt)
		fmt.Println("order stored") // while the receipt is on its way
		if _, err := receipt.Await(ctx, time.Minute); err != nil {
			fmt.Println("no receipt:", err)
		}
		async.Start(ctx, func(context.Context) error { return errors.New("printer is offline") }, async.Name("print"))
		return nil // nobody awaits this one
	})
	fmt.Println("scope:", err)
	// Output:
	// order stored
	// no receipt: mailbox is full
	// scope: async: print: nobody awaited it: printer is offline
}

func ExampleFuture_Wait() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		fromDisk := make(chan string)
		config := async.Execute(ctx, func(ctx context.Context) (string, error) { // shared by all requests
			select {
			case text := <-fromDisk:
				return text, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		request, hangUp := context.WithCancel(ctx)
		hangUp()
		_, err := config.Wait(request) // an Await would abort it for everybody
		fmt.Println("first request:", err)
		fromDisk <- "port = 8080"
		text, err := config.Wait(ctx)
		fmt.Println("second request:", text, err)
		return nil
	})
	// Output:
	// first request: context canceled
	// second request: port = 8080 <nil>
}

func ExampleFuture_Done() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		percent := make(chan int)
		download := async.Execute(ctx, func(context.Context) (string, error) {
			percent <- 50
			percent <- 100
			return "report.pdf", nil
		})
		for {
			select {
			case p := <-percent:
				fmt.Println(p, "percent")
			case <-download.Done():
				file, err, _ := download.Result()
				fmt.Println("saved", file)
				return err
			}
		}
	})
	fmt.Println(err)
	// Output:
	// 50 percent
	// 100 percent
	// saved report.pdf
	// <nil>
}

func ExampleFuture_Result() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		price := async.Execute(ctx, func(context.Context) (string, error) { return "12 EUR", nil })
		stock := async.Execute(ctx, func(ctx context.Context) (string, error) {
			<-ctx.Done() // the warehouse is slow
			return "", ctx.Err()
		})
		<-price.Done()
		for _, part := range []*async.Future[string]{price, stock} { // the page goes out with what is there
			if text, err, ok := part.Result(); ok {
				fmt.Println(text, err)
			} else {
				fmt.Println("not known yet")
				part.Cancel(nil)
			}
		}
		return nil
	})
	// Output:
	// 12 EUR <nil>
	// not known yet
}

func ExampleFuture_Cancel() {
	errNewQuery := errors.New("the user typed on")
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		search := async.Execute(ctx, func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		search.Cancel(errNewQuery)
		search.Cancel(nil) // too late: the first cause wins
		_, err := search.Wait(ctx)
		fmt.Println("search:", err)
		fmt.Println(errors.Is(err, errNewQuery), errors.Is(err, context.Canceled))
		return nil
	})
	fmt.Println("scope:", err) // whoever cancels has been told
	// Output:
	// search: the user typed on
	// true true
	// scope: <nil>
}

func ExampleFuture_State() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		begun, removed := make(chan struct{}), make(chan struct{})
		build := async.Start(ctx, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			<-removed // half a build is of no use
			return ctx.Err()
		})
		test := async.Start(ctx, func(context.Context) error { return nil })
		<-begun
		fmt.Println("build:", build.State(), "test:", test.State()) // one at a time
		build.Cancel(errors.New("new commit"))
		fmt.Println("build:", build.State())
		close(removed)
		_, err := build.Wait(ctx)
		fmt.Println("build:", build.State(), "because of a", err)
		return nil
	}, async.Limit(1))
	// Output:
	// build: running test: queued
	// build: aborting
	// build: done because of a new commit
}

func ExampleFuture_Join() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		server := async.Start(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			fmt.Println("closing connections")
			return nil
		})
		server.Cancel(errors.New("maintenance"))
		_, err := server.Join(ctx) // however long it takes
		fmt.Println("stopped")
		return err
	})
	fmt.Println("scope:", err)
	// Output:
	// closing connections
	// stopped
	// scope: <nil>
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

func ExampleCompleted() {
	v, err := async.Completed("from the cache", nil).Await(context.Background(), 0)
	fmt.Println(v, err)
	// Output: from the cache <nil>
}

func ExampleAll() {
	var slow error // why the slow shard was stopped
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		users := func(n int, err error) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { return n, err }
		}
		counts, err := async.All(ctx, users(3, nil), users(4, nil), users(5, nil)).Await(ctx, time.Minute)
		fmt.Println(counts, err)
		endless := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			slow = context.Cause(ctx)
			return 0, ctx.Err()
		}
		counts, err = async.All(ctx, users(3, nil), endless, users(0, errors.New("shard 2 is down"))).Await(ctx, time.Minute)
		fmt.Println(counts, err)
		return nil
	})
	fmt.Println("slow shard:", slow) // it has ended, too
	// Output:
	// [3 4 5] <nil>
	// [] shard 2 is down
	// slow shard: async: decided without it
}

func ExampleSettle() {
	ping := func(name string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return name, err }
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		checks := async.Settle(ctx,
			ping("database", nil),
			ping("cache", errors.New("connection refused")),
			ping("mail", nil))
		results, err := checks.Await(ctx, time.Minute)
		for _, r := range results {
			fmt.Printf("%s: %v\n", r.Value, r.Err)
		}
		return err // nil: the errors are in the results
	})
	fmt.Println("scope:", err)
	// Output:
	// database: <nil>
	// cache: connection refused
	// mail: <nil>
	// scope: <nil>
}

func ExampleRace() {
	ready := func(ctx context.Context) (string, error) {
		<-ctx.Done() // the server never answers
		return "", ctx.Err()
	}
	exited := func(context.Context) (string, error) {
		return "", errors.New("exit status 1: port 8080 is taken")
	}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		address, err := async.Race(ctx, ready, exited).Await(ctx, time.Minute)
		fmt.Printf("%q %v\n", address, err) // the first to end decides, also by an error
		return nil
	})
	// Output: "" exit status 1: port 8080 is taken
}

func ExampleAny() {
	down := func(context.Context) (string, error) { return "", errors.New("mirror is down") }
	busy := func(ctx context.Context) (string, error) {
		<-ctx.Done() // no longer needed
		return "", ctx.Err()
	}
	good := func(context.Context) (string, error) { return "go1.26.tar.gz", nil }
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		file, err := async.Any(ctx, down, busy, good).Await(ctx, time.Minute)
		fmt.Println(file, err)
		_, err = async.Any(ctx, down, down).Await(ctx, time.Minute)
		fmt.Println(err)
		_, err = async.Any[string](ctx).Await(ctx, time.Minute)
		fmt.Println(err)
		return nil
	})
	// Output:
	// go1.26.tar.gz <nil>
	// async: async.Any: mirror is down
	// 	mirror is down
	// async: no tasks to choose from
}

func ExampleUntil() {
	const leader = 0
	wins := func(r async.Result[string]) bool { return r.Index == leader || r.Err != nil }
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		warm := make(chan struct{})
		migrate := func(context.Context) (string, error) {
			<-warm
			return "40 rows moved", nil
		}
		warmUp := func(context.Context) (string, error) {
			defer close(warm)
			return "cache is warm", nil // decides nothing: it is only a helper
		}
		holdLease := func(ctx context.Context) (string, error) {
			<-ctx.Done() // renews the lease as long as it is needed; an error would end it all
			return "", ctx.Err()
		}
		done, err := async.Until(ctx, wins, migrate, warmUp, holdLease).Await(ctx, time.Minute)
		fmt.Println(done, err)
		return nil
	})
	// Output: 40 rows moved <nil>
}

func ExampleQuorum() {
	stored := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return name, nil }
	}
	full := func(context.Context) (string, error) { return "", errors.New("disk full") }
	slow := func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		replicas, err := async.Quorum(ctx, 2, stored("berlin"), slow, stored("oslo")).Await(ctx, time.Minute)
		fmt.Println(replicas, err)
		replicas, err = async.Quorum(ctx, 2, full, slow, full).Await(ctx, time.Minute)
		fmt.Println(replicas, errors.Is(err, async.ErrNoQuorum)) // the slow one could not help
		return nil
	})
	// Output:
	// [berlin oslo] <nil>
	// [] true
}

func ExampleHedge() {
	var why error
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		stuck := func(ctx context.Context) (string, error) {
			<-ctx.Done() // one of the few slow requests
			why = context.Cause(ctx)
			return "", ctx.Err()
		}
		spare := func(context.Context) (string, error) { return "42 results", nil }
		results, err := async.Hedge(ctx, time.Millisecond, stuck, spare).Await(ctx, time.Minute)
		fmt.Println(results, err) // a second request was sent after 1ms
		broken := func(context.Context) (string, error) { return "", errors.New("connection reset") }
		results, err = async.Hedge(ctx, time.Hour, broken, spare).Await(ctx, time.Minute)
		fmt.Println(results, err) // it was sent at once, because the first had failed
		return nil
	})
	fmt.Println("stuck:", why)
	// Output:
	// 42 results <nil>
	// 42 results <nil>
	// stuck: async: decided without it
}

func ExampleDiscarding() {
	near, _ := net.Pipe()
	far, server := net.Pipe()
	decided := make(chan struct{})
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		dials := async.Discarding(func(c net.Conn) { c.Close() },
			func(context.Context) (net.Conn, error) { return near, nil },
			func(context.Context) (net.Conn, error) {
				<-decided // looks at no context, and succeeds too late
				return far, nil
			})
		conn, err := async.Any(ctx, dials...).Await(ctx, time.Minute)
		fmt.Println("the near one:", conn == near, err)
		close(decided)
		return conn.Close()
	})
	_, err := server.Read(make([]byte, 1))
	fmt.Println("server of the far one:", err)
	// Output:
	// the near one: true <nil>
	// server of the far one: EOF
}
