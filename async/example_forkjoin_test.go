package async_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

func ExampleForkJoin() {
	resize := func(_ context.Context, picture string) (string, error) {
		if picture == "scan.txt" {
			return "", errors.New("not a picture")
		}
		return "small-" + picture, nil
	}
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		album := []string{"cat.jpg", "scan.txt", "dog.jpg"}
		results, err := async.ForkJoin(ctx, album, resize).Await(ctx, time.Minute)
		for _, r := range results { // in the order of the album
			fmt.Printf("%s: %q %v\n", album[r.Index], r.Value, r.Err)
		}
		return err // nil: the errors are in the results
	})
	fmt.Println("scope:", err)
	// Output:
	// cat.jpg: "small-cat.jpg" <nil>
	// scan.txt: "" not a picture
	// dog.jpg: "small-dog.jpg" <nil>
	// scope: <nil>
}

func ExampleForkJoin_limit() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		encoders := make(chan string, 2) // the machine has two
		encoders <- "left"
		encoders <- "right"
		encode := func(_ context.Context, minutes int) (int, error) {
			select {
			case e := <-encoders:
				defer func() { encoders <- e }()
				return minutes * 60, nil
			default:
				return 0, errors.New("no encoder is free")
			}
		}
		films := []int{90, 120, 45, 80, 110}
		seconds, err := async.ForkJoin(ctx, films, encode, async.Limit(2)).Await(ctx, time.Minute)
		for _, r := range seconds {
			fmt.Print(r.Value, " ")
		}
		return err
	})
	// Output: 5400 7200 2700 4800 6600
}

func ExampleForEach() {
	list := "ada@example.org\nbob\ncyd@example.org\n"
	var sent atomic.Int32
	err := async.ForEach(context.Background(), strings.Lines(list), func(_ context.Context, line string) error {
		address := strings.TrimSpace(line)
		if !strings.Contains(address, "@") {
			return fmt.Errorf("%q is no address", address)
		}
		sent.Add(1)
		return nil
	}, async.Limit(10)) // ten letters at a time, however long the list
	fmt.Println(sent.Load(), "sent,", err)
	// Output: 2 sent, "bob" is no address
}

func ExampleMap() {
	pages := []string{"/", "/about", "/old", "/jobs"}
	title := func(_ context.Context, page string) (string, error) {
		if page == "/old" {
			return "", errors.New("404 not found")
		}
		return "title of " + page, nil
	}
	for t, err := range async.Map(context.Background(), slices.Values(pages), title, async.Limit(2)) {
		if err != nil {
			fmt.Println(err)
			break // what was begun is cancelled and has ended after the loop
		}
		fmt.Println(t) // in the order of the pages
	}
	// Output:
	// title of /
	// title of /about
	// 404 not found
}

func ExampleAsCompleted() {
	served := make(chan struct{})
	tasks := []func(context.Context) (string, error){
		func(context.Context) (string, error) {
			<-served // takes longer
			return "roast", nil
		},
		func(context.Context) (string, error) { return "soup", nil },
	}
	for i, r := range async.AsCompleted(context.Background(), slices.Values(tasks)) {
		fmt.Println("order", i, "is ready:", r.Value, r.Err)
		if i == 1 {
			close(served)
		}
	}
	// Output:
	// order 1 is ready: soup <nil>
	// order 0 is ready: roast <nil>
}

func ExampleFailFast() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		upload := func(_ context.Context, part string) (int, error) {
			if part == "" {
				return 0, errors.New("the disk cannot be read")
			}
			return len(part), nil
		}
		parts := []string{"first", "", "third"}
		results, err := async.ForkJoin(ctx, parts, upload, async.FailFast(), async.Limit(1)).Await(ctx, time.Minute)
		fmt.Println("upload:", err)
		for _, r := range results {
			fmt.Println(r.Index, r.Value, r.Err) // the last one was not begun
		}
		return nil
	})
	// Output:
	// upload: the disk cannot be read
	// 0 5 <nil>
	// 1 0 the disk cannot be read
	// 2 0 the disk cannot be read
}

func ExampleItemTimeout() {
	ping := func(ctx context.Context, host string) (string, error) {
		if host == "db2" {
			<-ctx.Done() // does not answer
			return "", ctx.Err()
		}
		return "up", nil
	}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		hosts := []string{"db1", "db2", "db3"}
		results, err := async.ForkJoin(ctx, hosts, ping, async.ItemTimeout(time.Millisecond)).Await(ctx, time.Minute)
		for _, r := range results {
			fmt.Println(hosts[r.Index], r.Value, "timed out:", errors.Is(r.Err, context.DeadlineExceeded))
		}
		return err
	})
	// Output:
	// db1 up timed out: false
	// db2  timed out: true
	// db3 up timed out: false
}
