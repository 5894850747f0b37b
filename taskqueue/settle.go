package taskqueue

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// A settlement is an outcome on its way to the store.
type settlement struct {
	o      Outcome
	result SettleResult
}

// settle tells the store how a run has ended, again and again until it answers. When
// the worker stops it gives up after a lease, in which nothing was heard. In e it
// notes if the store does not take the outcome over.
func (w *worker) settle(live context.Context, queue string, o Outcome, e *Event) {
	var until time.Time
	for failures := 0; ; failures++ {
		s := &settlement{o: o}
		err := w.settles[queue].Do(s)
		if err == nil {
			if s.result != Settled {
				e.Kind = EventLost
			}
			return
		}
		w.tell(Event{Kind: EventStore, Queue: queue, ID: o.ID, Err: err})
		w.mu.Lock()
		stopping := w.stopping
		w.mu.Unlock()
		if stopping && until.IsZero() {
			until = clock.Now().Add(w.o.lease)
		}
		if permanent(err) || !until.IsZero() && clock.Now().After(until) {
			w.change(func() { w.lost, w.lostErr = append(w.lost, o.ID), err })
			e.Kind, e.Err = EventLost, errors.Join(e.Err, err)
			return
		}
		_ = sleep(live, min(50*time.Millisecond<<min(failures, 5), maxIdle))
	}
}

// settleAll sends outcomes that came together, as many at a time as one step may have.
func (w *worker) settleAll(queue string, all []*settlement) error {
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && (n == 0 || size+all[n].size() <= MaxBatchBytes) {
			size += all[n].size()
			n++
		}
		if err := w.settleStep(queue, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func (s *settlement) size() int { return len(s.o.Result) + len(s.o.Error) }

func (w *worker) settleStep(queue string, all []*settlement) error {
	outcomes := make([]Outcome, len(all))
	for i, s := range all {
		outcomes[i] = s.o
	}
	// Not that of a run: its outcome is to be told also when its context is done.
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	results, err := w.q.store.Settle(ctx, queue, outcomes)
	for i := range results {
		all[i].result = results[i]
	}
	return err
}
