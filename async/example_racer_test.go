package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
)

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
