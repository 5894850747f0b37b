package main

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// A run does n units and returns how long that took.
type run func(n int) time.Duration

// rates is a row of units a second: ours and asynq's take turns.
func rates(rounds, n int, ours, peer run) measure.Row {
	rate := func(r run) func() float64 { return func() float64 { return float64(n) / r(n).Seconds() } }
	took := measure.Turns(rounds, rate(ours), rate(peer))
	return measure.Row{Peer: "asynq", Unit: "/s", Ours: took[0], Theirs: took[1], Ratio: true}
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }

// quantile returns the value below which the share p of all is.
func quantile[T cmp.Ordered](all []T, p float64) T {
	all = slices.Sorted(slices.Values(all))
	return all[min(int(p*float64(len(all))), len(all)-1)]
}

// together calls f n times with the numbers from 0, on some goroutines, and returns
// how long that took.
func together(goroutines, n int, f func(i int)) time.Duration {
	var wg sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < n; i += goroutines {
				f(i)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}
