package taskqueue

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A settlement is an outcome on its way to the store. Those that come while others are
// being told go together, in one call.
type settlement struct {
	o      store.Outcome
	result store.SettleResult
	err    error
}

// settle tells the store how a run has ended, again and again until it answers. When
// the worker stops it gives up after a lease, in which nothing was heard. In e it
// notes if the store does not take the outcome over. It reports whether the place of
// the run is free again.
func (w *worker) settle(live context.Context, queue string, o store.Outcome, e *Event) (released bool) {
	var until time.Time
	for failures := 0; ; failures++ {
		s := &settlement{o: o}
		// Not the context of the run: its outcome is to be told also when that is done.
		err := errors.Join(w.settles[queue].Do(context.Background(), s), s.err)
		if err == nil {
			switch s.result {
			case store.Settled:
			case store.Overruled:
				e.Kind = EventCancelled
			default:
				e.Kind = EventLost
			}
			return true
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
			return false
		}
		_ = async.Sleep(live, pause(failures))
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
		w.settleStep(queue, all[:n])
		all = all[n:]
	}
	return nil
}

func (s *settlement) size() int { return len(s.o.Result) + len(s.o.Error) }

// settleStep sends outcomes in one call and releases the places of their runs. If the
// store says that something is wrong with them each is sent alone: the others are not to
// suffer.
func (w *worker) settleStep(queue string, all []*settlement) {
	outcomes := make([]store.Outcome, len(all))
	refs := make([]store.Ref, len(all))
	for i, s := range all {
		outcomes[i], refs[i] = s.o, s.o.Ref
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	results, err := w.q.store.Settle(ctx, queue, outcomes)
	if permanent(err) && len(all) > 1 {
		for i := range all {
			w.settleStep(queue, all[i:i+1])
		}
		return
	}
	for i, s := range all {
		if s.err = err; err == nil {
			s.result = results[i]
		}
	}
	if err == nil {
		w.release(queue, refs...)
	}
}
