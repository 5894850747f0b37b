package asynctest_test

import (
	"context"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A sweeper sweeps in the background, until its scope ends.
type sweeper struct {
	every time.Duration
	sweep func(ctx context.Context) error
}

// start starts it in the scope of ctx.
func (s *sweeper) start(ctx context.Context) {
	async.Go(ctx, func(ctx context.Context) error {
		for async.Sleep(ctx, s.every) == nil {
			if err := s.sweep(ctx); err != nil {
				return err
			}
		}
		return nil // it was told to stop
	}, async.Name("sweeper"), async.Daemon())
}

// A test of code that starts something in the scope of its caller. In a bubble an hour takes no time; a deadlock shows who waits for
// whom; and when the test ends the sweeper is stopped and joined, or the test fails.
func Example() {
	_ = func(t *testing.T) { // TestTheSweeperSweepsEveryHour
		asynctest.Run(t, func(t *testing.T, ctx context.Context) {
			swept := 0
			s := &sweeper{every: time.Hour, sweep: func(context.Context) error { swept++; return nil }}
			s.start(ctx)
			if err := async.Sleep(ctx, 150*time.Minute); err != nil {
				t.Fatal(err)
			}
			if swept != 2 {
				t.Error("swept", swept, "times; live:", asynctest.Live(ctx))
			}
		})
	}
}
