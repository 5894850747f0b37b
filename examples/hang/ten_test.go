//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asyncz"
	"github.com/ambit-go/ambit/async/record"
	"github.com/ambit-go/ambit/service"
)

// This file is a program that has something for each of ten questions: the shop that hangs, and beside it what fails, is forgotten, and ends.

// ten is the program.
func ten() {
	service.Main(func(ctx context.Context) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		rec := record.New(record.Callers())
		page := asyncz.Handler(asyncz.Texts(), asyncz.Recorder(rec))
		say("what hangs here, and why? http://%s/", l.Addr())
		return service.Run(ctx, []service.Service{
			{Name: "shop", Run: func(ctx context.Context) error { return shop(ctx, async.Observe(rec)) }},
			{Name: "office", Run: func(ctx context.Context) error { return office(ctx, async.Observe(rec)) }},
			{Name: "ages", Run: page.Run},
			service.HTTP("asyncz", l, &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}),
		}, service.Log(nil))
	})
	os.Exit(0)
}

// office is what the shop has not.
func office(ctx context.Context, opts ...async.ScopeOption) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(context.Context) error { return errors.New("no route to mail.example") }, async.Name("send mail"),
			async.Restart(async.RestartPolicy{Interval: async.Every(200 * time.Millisecond), Attempts: 1000}))
		async.Execute(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil }, async.Name("yearly report"))
		async.Execute(ctx, func(context.Context) (int, error) { return 0, errors.New("no such table") }, async.Name("audit"))
		async.Go(ctx, order, async.Name("GET /orders/7"))
		for n := 1; ; n++ {
			f := async.Start(ctx, func(ctx context.Context) error { return quote(ctx, n) }, async.Name(fmt.Sprint("quote ", n)))
			if _, _ = f.Wait(ctx); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}, append(opts, async.Name("office"))...)
}

// order is a request that has started two things, and waits for them.
func order(ctx context.Context) error {
	customer := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("load customer"))
	items := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }, async.Name("load items"))
	if _, err := customer.Wait(ctx); err != nil {
		return err
	}
	_, err := items.Wait(ctx)
	return err
}

// quote takes a moment; one in seven fails.
func quote(ctx context.Context, n int) error {
	if err := async.Sleep(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	if n%7 == 0 {
		return errors.New("the bank is closed")
	}
	return nil
}
