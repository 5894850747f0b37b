package taskqueue

import (
	"time"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// StuckAfter is how long a run lasts at most until [EventStuck] is told of it, and the page marks it. It is told
// before if the run lasts much longer than those of its type on this worker, and not less than a lease.
const StuckAfter = time.Hour

// took notes how long a run has lasted.
func (w *worker) took(kind string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.times[kind]
	if t == nil {
		t = new(sums.Spread)
		w.times[kind] = t
	}
	t.Note(d)
}

// tellStuck tells of runs that last for too long, of each once. Their leases are extended all the
// same: whether they get on nobody knows.
func (w *worker) tellStuck(queue string, runs []lease.Renewal[*run]) {
	for _, one := range runs {
		r := one.Of
		w.mu.Lock()
		after := w.times[r.c.Type].Stuck(w.o.lease, StuckAfter)
		w.mu.Unlock()
		if lasted := clock.Now().Sub(r.started); lasted > after && !r.stuck && r.c.lease.Err() == nil {
			r.stuck = true
			w.tell(Event{Kind: EventStuck, Queue: queue, ID: r.c.ID, Type: r.c.Type, Took: lasted})
		}
	}
}
