package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
	"github.com/ambit-go/ambit/scheduler"
)

// shop does four things at once, none of which ends before ctx does.
func shop(ctx context.Context, opts ...async.ScopeOption) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, checkout, async.Name("checkout"))
		async.Go(ctx, crawl, async.Name("crawl"))
		async.Go(ctx, pictures, async.Name("pictures"))
		return nil
	}, append(opts, async.Name("shop"))...)
}

// checkout charges a customer, and posts that in the ledger, whose worker does one thing at a time. The ledger
// waits until the customer is charged; but whoever charges asks the ledger for the balance first.
func checkout(ctx context.Context) error {
	ledger := scheduler.New(scheduler.Goroutines()).NewWorker(ctx, scheduler.Name("ledger"))
	posting := make(chan struct{})
	charge := async.Execute(ctx, func(ctx context.Context) (int, error) {
		<-posting
		return scheduler.Call(ctx, ledger, balance) // fault: the ledger is busy with us
	}, async.Name("charge"))
	post := scheduler.Submit(ledger, func(ctx context.Context) (int, error) {
		close(posting)
		return charge.Wait(ctx)
	})
	_, err := post.Wait(ctx)
	return err
}

func balance(context.Context) (int, error) { return 100, nil }

// crawl fetches a page, which is to take two seconds at most.
func crawl(ctx context.Context) error {
	fetch := async.Start(ctx, func(context.Context) error {
		<-ctx.Done() // fault: the ctx of crawl, not its own
		return context.Cause(ctx)
	}, async.Name("fetch"), async.Timeout(2*time.Second))
	_, err := fetch.Join(ctx)
	return err
}

// pictures uploads pictures, one at a time, and has thumbnails made of each that is up.
func pictures(ctx context.Context) error {
	queue := jobqueue.New[string]()
	for n := range 2 {
		async.Go(ctx, func(ctx context.Context) error {
			return queue.Do(ctx, 1, func(context.Context, []string) error { return nil }) // starves: see announce
		}, async.Name(fmt.Sprint("thumbnails ", n+1)))
	}
	return async.Scope(ctx, func(ctx context.Context) error {
		var uploads []*async.Future[string]
		for n := range 4 {
			uploads = append(uploads, async.Execute(ctx, func(ctx context.Context) (string, error) {
				return upload(ctx, n)
			}, async.Name(fmt.Sprint("upload ", n+1))))
		}
		return announce(ctx, queue, uploads[len(uploads)-1])
	}, async.Limit(1), async.Name("uploads"))
}

// upload never comes to an end with the first picture: it holds the only slot meanwhile.
func upload(ctx context.Context, n int) (string, error) {
	if n == 0 {
		acknowledged := make(chan struct{}) // fault: nobody closes it
		select {
		case <-acknowledged:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return fmt.Sprint("picture ", n+1), nil
}

// announce adds a job when the last picture is up.
func announce(ctx context.Context, queue *jobqueue.Queue[string, string], last *async.Future[string]) error {
	name, err := last.Wait(ctx)
	if err != nil {
		return err
	}
	queue.Add(name)
	return nil
}
