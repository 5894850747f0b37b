package taskqueue

import (
	"math/bits"
	"time"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// StuckAfter is how long a run lasts at most until [EventStuck] is told of it, and the page marks it.
const StuckAfter = time.Hour

// A run is told to be stuck, too, when it has lasted stuckTimes as long as 99 of 100 runs of its type
// on this worker, if so many are known, and not less than a lease.
const (
	stuckTimes = 10
	stuckRuns  = 100
)

// runTimes counts runs by how long they have lasted: those of up to 1 << i microseconds at i.
type runTimes struct {
	n  int
	by [64]int
}

func (t *runTimes) add(d time.Duration) {
	t.n++
	t.by[bits.Len64(uint64(max(d.Microseconds(), 0)))]++
}

// most returns how long 99 of 100 runs have lasted at most; 0 if too few are known.
func (t *runTimes) most() time.Duration {
	if t == nil || t.n < stuckRuns {
		return 0
	}
	longer := 0
	for i := len(t.by) - 1; i >= 0; i-- {
		if longer += t.by[i]; longer > t.n/100 {
			return time.Duration(1) << min(i, 50) * time.Microsecond
		}
	}
	return 0
}

// took notes how long a run has lasted.
func (w *worker) took(kind string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.times[kind]
	if t == nil {
		t = new(runTimes)
		w.times[kind] = t
	}
	t.add(d)
}

// tellStuck tells of runs that last for too long, of each once. Their leases are extended all the
// same: whether they get on nobody knows.
func (w *worker) tellStuck(queue string, runs []lease.Renewal[*run]) {
	for _, one := range runs {
		r := one.Of
		w.mu.Lock()
		after, known := StuckAfter, w.times[r.c.Type].most()
		w.mu.Unlock()
		if known > 0 {
			after = min(after, max(stuckTimes*known, w.o.lease))
		}
		if lasted := clock.Now().Sub(r.started); lasted > after && !r.stuck && r.c.lease.Err() == nil {
			r.stuck = true
			w.tell(Event{Kind: EventStuck, Queue: queue, ID: r.c.ID, Type: r.c.Type, Took: lasted})
		}
	}
}
