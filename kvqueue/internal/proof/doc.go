// Package proof is how the promises of package kvqueue are shown to hold: a [Worker] does at
// random what a process does with queues, a [Ledger] compares what was asked for with what
// the store has shown, an [Auditor] plays every transaction of the store again, and a
// [History] is checked for linearizability. All of it works on any store, in the fake time of
// testing/synctest and in real time.
package proof

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// patience is how long is waited for what must come. It is long, as machines are busy.
const patience = 10 * time.Minute

// A Dice gives random numbers to any number of goroutines.
type Dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

// NewDice returns a dice that gives the same numbers for the same seed.
func NewDice(seed uint64) *Dice { return &Dice{r: rand.New(rand.NewPCG(seed, 15))} }

// N returns a number from 0 to before n.
func (d *Dice) N(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// Pause waits for a random time up to most, or for the end of ctx.
func (d *Dice) Pause(ctx context.Context, most time.Duration) {
	t := time.NewTimer(time.Duration(d.N(int(max(most, 1)))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
