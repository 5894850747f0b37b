// Actor shows actors: state without locks. Bank accounts are actors, and a
// transfer has two of them to itself without a deadlock; a downloader of images
// is one, and however many ask for an image it is downloaded once.
//
//	go run ./examples/actor
//	go run ./examples/actor -accounts 10 -transfers 100000 -requests 100
//
// It is meant to be copied: actor.go is the actor, in about forty lines; bank.go
// and images.go are what it is good for; gallery.go draws images to download;
// main.go and flags.go make a program of it.
//
// It exits with 0 if all was right, 1 if it was not, 2 when the arguments are
// wrong, 130 when interrupted and 143 when terminated. (go run hides the status:
// it prints it and exits with 1.)
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/loopback"
	"github.com/ambit-go/ambit/scheduler"
)

func main() { program().Main() }

// run does everything in one scope, and fails at the first thing that is wrong.
func run(ctx context.Context, cfg config, out *cli.Out) error {
	err := async.Scope(ctx, func(ctx context.Context) error {
		cli.FailOnSignal(ctx)
		if err := bank(ctx, cfg, out); err != nil {
			return err
		}
		if err := downloads(ctx, cfg, out); err != nil {
			return err
		}
		return out.Err()
	}, async.Name("actor"))
	return cli.SignalAlone(err)
}

// bank moves money about and looks whether it is all there.
func bank(ctx context.Context, cfg config, out *cli.Out) error {
	const each money = 100_00
	return async.Scope(ctx, func(ctx context.Context) error {
		s := scheduler.New(scheduler.Goroutines())
		var all []*account
		for i := range cfg.accounts {
			all = append(all, openAccount(ctx, s, fmt.Sprint("account ", i+1), each))
		}
		want := each * money(len(all))
		out.Printf("bank: %d accounts with %v each\n", len(all), each)

		_, err := all[0].withdraw(ctx, each+1)
		if short := new(shortError); !errors.As(err, &short) {
			return fmt.Errorf("bank: %v was paid out of %v: %v", each+1, each, err)
		}
		out.Printf("bank: refused: %v\n", err)

		made, refused, err := shuffle(ctx, all, cfg.transfers, want)
		if err != nil {
			return err
		}
		out.Printf("bank: %d transfers at once, in all directions: %d made, %d refused\n", cfg.transfers, made, refused)
		sum, err := total(ctx, all)
		if err != nil {
			return err
		}
		if sum != want {
			return fmt.Errorf("bank: there were %v, there are %v", want, sum)
		}
		out.Printf("bank: still %v, and never seen otherwise\n", sum)
		return nil
	}, async.Name("bank"))
}

// shuffle makes n transfers, some at a time. It fails if all accounts together
// are ever seen to hold something else than want.
func shuffle(ctx context.Context, all []*account, n int, want money) (made, refused int64, err error) {
	const atOnce, look = 64, 16 // one in so many looks
	var done, short atomic.Int64
	transfers := func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
	err = async.ForEach(ctx, transfers, func(ctx context.Context, i int) error {
		if i%look == 0 {
			sum, err := total(ctx, all)
			if err != nil {
				return err
			}
			if sum != want {
				return fmt.Errorf("bank: there were %v, %v are seen", want, sum)
			}
		}
		from := rand.IntN(len(all))
		to := (from + 1 + rand.IntN(len(all)-1)) % len(all)
		err := transfer(ctx, all[from], all[to], money(1+rand.IntN(150_00)))
		if errors.As(err, new(*shortError)) {
			short.Add(1)
			return nil
		}
		if err == nil {
			done.Add(1)
		}
		return err
	}, async.Limit(atOnce), async.FailFast())
	return done.Load(), short.Load(), err
}

// downloads has many ask for each image and looks how often the server was.
func downloads(ctx context.Context, cfg config, out *cli.Out) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		site := newGallery(cfg.images)
		root, err := loopback.Serve(ctx, site)
		if err != nil {
			return fmt.Errorf("cannot serve images: %w", err)
		}
		client := &http.Client{Transport: &http.Transport{}}
		async.OnExit(ctx, func(context.Context, error) error { client.CloseIdleConnections(); return nil })
		d := newImages(ctx, scheduler.New(scheduler.Goroutines()), client)

		_, err = d.get(ctx, root+"/missing.png")
		if err == nil {
			return errors.New("images: /missing.png was downloaded")
		}
		out.Printf("images: /missing.png: %v\n", err)
		for i := range cfg.images {
			if err := request(ctx, d, site, root, imagePath(i), cfg.requests, out); err != nil {
				return err
			}
		}
		return nil
	}, async.Name("downloads"))
}

// request asks for an image n times at once.
func request(ctx context.Context, d *images, site *gallery, root, path string, n int, out *cli.Out) error {
	err := async.Scope(ctx, func(ctx context.Context) error {
		for range n {
			async.Go(ctx, func(ctx context.Context) error {
				p, err := d.get(ctx, root+path)
				if err == nil && !bytes.Equal(p.data, site.images[path]) {
					err = fmt.Errorf("images: %s came as something else", path)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	p, err := d.get(ctx, root+path)
	if err != nil {
		return err
	}
	if asked := site.asked(path); asked != 1 {
		return fmt.Errorf("images: the server was asked for %s %d times", path, asked)
	}
	out.Printf("images: %s: %s, %d by %d, %d bytes: %d asked for it, the server was asked once\n",
		path, p.format, p.width, p.height, len(p.data), n)
	return nil
}
