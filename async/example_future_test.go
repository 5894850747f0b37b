package async_test

import (
	"context"
	"errors"
	"fmt"
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
