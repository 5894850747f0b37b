package taskqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// A NoteStore is a store that keeps notes of a queue beside its tasks: workers note sums of their runs, by
// type, and package page makes charts of those. The stores of this module are.
type NoteStore interface {
	Store
	// Notes returns those notes of these names that there are.
	Notes(ctx context.Context, queue string, names []string) (map[string][]byte, error)
	// ChangeNotes changes notes by what f makes of them, in one step. f is given those of these names, may add
	// others, and deletes one by setting it to nil. It is called again if they have changed meanwhile.
	ChangeNotes(ctx context.Context, queue string, names []string, f func(notes map[string][]byte)) error
}

// sumEvery is how often a worker notes its sums: a process that is killed loses that much.
const sumEvery = 10 * time.Second

// sum adds a run to the sums that the worker is to note.
func (w *worker) sum(queue string, e *Event, late time.Duration) {
	switch e.Kind {
	case EventLost, EventUnknown, EventCancelled:
		if e.Took == 0 { // no handler was called, as a rule
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.sums[queue]
	if of == nil {
		of = map[string]*sums.Sums{}
		w.sums[queue] = of
	}
	s := of[e.Type]
	if s == nil {
		s = new(sums.Sums)
		of[e.Type] = s
	}
	switch e.Kind {
	case EventDone:
		s.Done++
	case EventFailed:
		s.Failed++
	}
	s.Late.Note(late)
	s.Took.Note(e.Took)
}

// keepSums notes sums until ctx is done.
func (w *worker) keepSums(ctx context.Context) error {
	for async.Sleep(ctx, sumEvery) == nil {
		w.noteSums(ctx)
	}
	return nil
}

// noteSums notes what there is by now. A store that does not take it is asked again the next time: if only its
// answer was lost, some runs are noted twice.
func (w *worker) noteSums(ctx context.Context) {
	notes, is := w.q.store.(NoteStore)
	if !is {
		return
	}
	w.mu.Lock()
	all := w.sums
	w.sums = map[string]map[string]*sums.Sums{}
	w.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for queue, some := range all {
		err := sums.Add(call, notes, queue, clock.Now(), some)
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			w.tell(Event{Kind: EventStore, Queue: queue, Err: err})
		}
		w.mu.Lock()
		for kind, s := range w.sums[queue] {
			if some[kind] != nil {
				s.Add(some[kind])
			}
			some[kind] = s
		}
		w.sums[queue] = some
		w.mu.Unlock()
	}
}

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
