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

func ExamplePoll() {
	phases := []string{"Pending", "Pulling", "Running"} // what the cluster will say
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		pod := async.Poll(ctx, async.Every(time.Millisecond), func(context.Context) (string, bool, error) {
			phase := phases[0]
			phases = phases[1:]
			fmt.Println("seen:", phase)
			return phase, phase == "Running", nil
		})
		phase, err := pod.Await(ctx, time.Minute)
		fmt.Println("pod:", phase, err)
		return nil
	})
	// Output:
	// seen: Pending
	// seen: Pulling
	// seen: Running
	// pod: Running <nil>
}

func ExampleRepeat() {
	err := async.Scope(context.Background(), func(ctx context.Context) error {
		prices := make(chan int)
		price := 100
		async.Repeat(ctx, async.Every(time.Millisecond), func(ctx context.Context) error {
			price++ // stands for a request
			select {
			case prices <- price:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, async.Daemon()) // it stops when the others have ended
		for range 3 {
			fmt.Println("price:", <-prices)
		}
		return nil
	})
	fmt.Println("scope:", err)
	// Output:
	// price: 101
	// price: 102
	// price: 103
	// scope: <nil>
}

func ExampleSleep() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		reminder := async.Start(ctx, func(ctx context.Context) error {
			if err := async.Sleep(ctx, time.Hour); err != nil {
				fmt.Println("woken early:", err)
				return nil
			}
			fmt.Println("time for the meeting")
			return nil
		})
		mail := async.Execute(ctx, func(context.Context) (string, error) { return "the meeting is off", nil })
		news, _ := mail.Await(ctx, time.Minute) // it has the slot that the sleeper lends
		reminder.Cancel(errors.New(news))
		return nil
	}, async.Limit(1))
	// Output: woken early: the meeting is off
}

func ExampleEvery() {
	wait := async.Every(time.Second)
	fmt.Println(wait(1), wait(100))
	// Output: 1s 1s
}

func ExampleBackoff() {
	wait := async.Backoff(100*time.Millisecond, time.Second)
	for attempt := 1; attempt <= 6; attempt++ {
		fmt.Println(wait(attempt))
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
	// 1s
}

func ExampleJitter() {
	wait := async.Jitter(0.2, async.Every(time.Second)) // so that not all clients come at once
	for attempt := 1; attempt <= 3; attempt++ {
		d := wait(attempt)
		fmt.Println(800*time.Millisecond <= d, d <= 1200*time.Millisecond)
	}
	// Output:
	// true true
	// true true
	// true true
}

func ExampleAgain() {
	answers := []error{errors.New("connection refused"), errors.New("server is starting"), nil}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		server := async.Poll(ctx, async.Backoff(time.Millisecond, time.Second), func(context.Context) (string, bool, error) {
			err := answers[0]
			answers = answers[1:]
			if err != nil {
				fmt.Println("not yet:", err)
				return "", false, async.Again(err) // without Again it would end the poll
			}
			return "v1.4", true, nil
		})
		version, err := server.Await(ctx, time.Minute)
		fmt.Println("server:", version, err)
		return nil
	})
	// Output:
	// not yet: connection refused
	// not yet: server is starting
	// server: v1.4 <nil>
}

func ExampleAgainAfter() {
	requests := 0
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		report := async.Poll(ctx, async.Every(time.Hour), func(context.Context) (string, bool, error) {
			if requests++; requests == 1 {
				retryAfter := time.Millisecond // as the header says
				return "", false, async.AgainAfter(retryAfter, errors.New("429 Too Many Requests"))
			}
			return "report.pdf", true, nil
		})
		file, err := report.Await(ctx, time.Minute) // no need to wait for an hour
		fmt.Println(file, err, "after", requests, "requests")
		return nil
	})
	// Output: report.pdf <nil> after 2 requests
}

func ExampleAttempts() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		invoice := async.Poll(ctx, async.Every(time.Millisecond), func(context.Context) (string, bool, error) {
			return "unpaid", false, nil
		}, async.Attempts(3), async.Name("payment"))
		_, err := invoice.Await(ctx, time.Minute)
		fmt.Println(err)
		pings := 0
		ping := async.Repeat(ctx, async.Every(time.Millisecond), func(context.Context) error {
			pings++
			return nil
		}, async.Attempts(3))
		_, err = ping.Await(ctx, time.Minute)
		fmt.Println(pings, "pings:", err) // all that were asked for
		return nil
	})
	// Output:
	// async: payment: no answer after 3 attempts; last value: unpaid
	// 3 pings: <nil>
}

func ExampleTolerate() {
	lost := errors.New("packet lost")
	answers := []error{nil, lost, nil, lost, lost}
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		link := async.Repeat(ctx, async.Every(time.Millisecond), func(context.Context) error {
			err := answers[0]
			answers = answers[1:]
			fmt.Println("ping:", err)
			return err
		}, async.Tolerate(1)) // a second in a row is one too many
		_, err := link.Await(ctx, time.Minute)
		fmt.Println("link is down:", errors.Is(err, lost))
		return nil
	})
	// Output:
	// ping: <nil>
	// ping: packet lost
	// ping: <nil>
	// ping: packet lost
	// ping: packet lost
	// link is down: true
}

func ExampleAfterInterval() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		lifetime := func(renewals int) time.Duration {
			fmt.Println("token", renewals, "is good for 1ms")
			return time.Millisecond
		}
		renew := func(context.Context) error {
			fmt.Println("renewed")
			return nil
		}
		_, err := async.Repeat(ctx, lifetime, renew, async.AfterInterval(), async.Attempts(2)).Await(ctx, time.Minute)
		fmt.Println(err)
		return nil
	})
	// Output:
	// token 0 is good for 1ms
	// renewed
	// token 1 is good for 1ms
	// renewed
	// <nil>
}

func ExampleFixedRate() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		const tick = time.Millisecond
		begin, sample := time.Now(), 0
		sampler := async.Repeat(ctx, async.Every(tick), func(context.Context) error {
			onTime := time.Since(begin) >= time.Duration(sample)*tick // never early
			fmt.Println("sample", sample, onTime)
			sample++
			return nil // the time this took is not added to the wait
		}, async.FixedRate(), async.Attempts(3))
		_, err := sampler.Await(ctx, time.Minute)
		return err
	})
	// Output:
	// sample 0 true
	// sample 1 true
	// sample 2 true
}

func ExamplePollError() {
	_ = async.Scope(context.Background(), func(ctx context.Context) error {
		deploy, stop := context.WithCancelCause(ctx)
		pod := async.Poll(deploy, async.Every(time.Hour), func(context.Context) (string, bool, error) {
			stop(errors.New("^C")) // the user does not want to wait
			return "Pending", false, async.Again(errors.New("no node has 64 GB"))
		})
		_, err := pod.Await(ctx, time.Minute)
		var e *async.PollError[string]
		if errors.As(err, &e) {
			fmt.Println(e.Attempts, e.Value, e.Err)
		}
		fmt.Println("stopped:", errors.Is(err, context.Canceled), context.Cause(deploy))
		return nil
	})
	// Output:
	// 1 Pending no node has 64 GB
	// stopped: true ^C
}

// A store that is busy is asked again. A failure that another attempt cannot mend is final.
func ExampleRetry() {
	answers := []error{errors.New("busy"), errors.New("connection lost"), nil}
	load := func(context.Context) (string, error) {
		err := answers[0]
		answers = answers[1:]
		if err != nil {
			return "", err
		}
		return "row 7", nil
	}
	row, err := async.Retry(context.Background(), async.Backoff(time.Millisecond, time.Second), load, async.Attempts(5))
	fmt.Println(row, err)

	denied := func(context.Context) (string, error) { return "", async.Final(errors.New("permission denied")) }
	_, err = async.Retry(context.Background(), async.Every(time.Second), denied)
	fmt.Println(err)
	// Output:
	// row 7 <nil>
	// permission denied
}
