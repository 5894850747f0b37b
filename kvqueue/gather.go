package kvqueue

import (
	"context"
	"runtime"
	"time"
)

// A gathering lets callers that were served together come together again: what the first of
// them asks for waits a little for the others, and one transaction serves all. It waits for as
// many as came the last time, and not for longer than a quarter of a transaction. So those who
// do not come back at once cost little, and are not waited for the next time.
type gathering struct {
	came int           // how many were served the last time
	took time.Duration // by the last transaction
}

// spin is for how long it is not worth while to set a timer.
const spin = 100 * time.Microsecond

// wait waits until as many are there as came the last time. The bell rings when there may be
// one more.
func (g *gathering) wait(ctx context.Context, there func() int, bell <-chan struct{}) {
	runtime.Gosched()
	begin, most := time.Now(), g.took/4
	for n := 0; there() < g.came && n < 100; n++ {
		left := most - time.Since(begin)
		switch {
		case left <= 0:
			return
		case most < spin:
			runtime.Gosched()
			continue
		}
		t := time.NewTimer(left)
		select {
		case <-bell:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}
