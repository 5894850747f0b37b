// Actor shows actors: state without locks. Bank accounts are actors, and a transfer
// has two of them to itself without a deadlock, however many go in all directions.
//
//	go run ./examples/actor
//	go run ./examples/actor -accounts 10 -transfers 100000
//
// actor.go is the actor, in about forty lines, bank.go what it is good for.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/scheduler"
	"github.com/ambit-go/ambit/service"
)

const about = `usage: actor [flags]

Actor moves money between accounts from many goroutines at once, and looks
meanwhile whether it is all there.

Exit status: 0 done, 1 money was lost or this cannot be written, 2 wrong arguments, 130
and 143 stopped by a signal.

`

func main() {
	const most = 10_000 // to look at all accounts at once is a task in each
	accounts := flag.Int("accounts", 4, "open `n` accounts, each with 100.00")
	transfers := flag.Int("transfers", 1000, "make `n` transfers between them")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || *accounts < 2 || *accounts > most || *transfers < 1 {
		fmt.Fprintf(os.Stderr, "actor: only flags; -accounts is 2 to %d, -transfers 1 or more\n", most)
		os.Exit(2)
	}
	service.Main(func(ctx context.Context) error { return bank(ctx, *accounts, *transfers) })
}

// bank moves money about and looks whether it is all there.
func bank(ctx context.Context, accounts, transfers int) error {
	const each money = 100_00
	return async.Scope(ctx, func(ctx context.Context) error {
		s := scheduler.New(scheduler.Goroutines())
		var all []*account
		for i := range accounts {
			all = append(all, openAccount(ctx, s, fmt.Sprint("account ", i+1), each))
		}
		want := each * money(len(all))
		w := bufio.NewWriter(os.Stdout) // it keeps its first error
		fmt.Fprintf(w, "%d accounts with %v each\n", len(all), each)
		fmt.Fprintf(w, "refused: %v\n", transfer(ctx, all[0], all[1], each+1))
		if err := w.Flush(); err != nil {
			return err
		}
		made, refused, err := shuffle(ctx, all, transfers, want)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d transfers at once, in all directions: %d made, %d refused\n", transfers, made, refused)
		if err := check(ctx, all, want); err != nil {
			return err
		}
		fmt.Fprintf(w, "still %v, and never seen otherwise\n", want)
		return w.Flush()
	})
}

// shuffle makes n transfers, some at a time, and looks whether all is there now and
// then.
func shuffle(ctx context.Context, all []*account, n int, want money) (made, refused int64, err error) {
	const atOnce, look = 64, 16 // one in so many looks
	var done, short atomic.Int64
	transfers := func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
	err = async.ForEach(ctx, transfers, func(ctx context.Context, i int) error {
		if i%look == 0 {
			if err := check(ctx, all, want); err != nil {
				return err
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

// check fails if all accounts together hold anything else than want.
func check(ctx context.Context, all []*account, want money) error {
	sum, err := total(ctx, all)
	if err == nil && sum != want {
		err = fmt.Errorf("there were %v, there are %v", want, sum)
	}
	return err
}
