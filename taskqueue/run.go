package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A run is a claimed task, from its claim until it is settled.
type run struct {
	c       *Claim
	cancel  context.CancelCauseFunc
	vacated bool // its place is free already; guarded by the worker's mu
	started time.Time
	stuck   bool // it was told that it lasts for long; only tellStuck looks
}

var (
	leaseLost = lease.CauseOf(func(error) error { return ErrLeaseLost })
	// released has a Release wait for no call: the store refuses a token that is not the last.
	released = func() context.Context { ctx, cancel := context.WithCancel(context.Background()); cancel(); return ctx }()
)

// begin starts a task that was claimed. sent is the time before the claim was sent: the lease lasts at
// least from then.
func (w *worker) begin(live context.Context, queue string, t *Info, sent time.Duration) {
	c := &Claim{
		Task: t.Task, Attempt: t.Attempt, Failures: t.Failures, Crashes: t.Crashes, Token: t.Token, DueAt: t.DueAt,
		ref: store.Ref{ID: t.ID, Token: t.Token}, releases: t.Releases, shared: w.q.shared, clock: w.clock,
	}
	ctx, cancel := context.WithCancelCause(w.home)
	r := &run{c: c, cancel: cancel, started: clock.Now()}
	key := runKey{queue, c.ref}
	w.mu.Lock()
	w.runs[key] = r
	stopping := w.stopping
	w.mu.Unlock()
	if stopping {
		cancel(ErrStopping)
	}
	l, late := w.keepers[queue].Keep(r, lease.Term{Granted: sent, Length: w.o.lease}, leaseLost)
	c.lease = l
	async.Go(live, func(live context.Context) error {
		defer cancel(nil)
		e := Event{Kind: EventLost, Queue: queue, ID: c.ID, Type: c.Type}
		var o store.Outcome
		settled := false
		if late == nil { // else the answer of the claim took too long
			o = w.handle(live, ctx, r, &e)
			if settled = l.End() == nil; settled {
				w.vacate(key)
				settled = w.settle(live, queue, o, &e)
			} else { // nothing that the handler has returned counts
				e.Kind = EventLost
			}
			_ = l.Release(released)
		}
		w.sum(queue, &e, r.started.Sub(c.DueAt))
		w.tell(e)
		if e.Kind == EventFailed && (o.Kind == store.Buried || c.Failures+1 >= c.MaxFailures) {
			e.Kind = EventDead
			w.tell(e)
		}
		if !settled {
			w.release(queue, key.ref)
		}
		return nil
	}, async.Name(runName(c)))
}

// handle runs the handler as a task. When that and everything it has started have ended it returns the
// outcome for the store, and completes what is told to the observer after that. ctx is that of
// the run, live our own.
func (w *worker) handle(live, ctx context.Context, r *run, e *Event) store.Outcome {
	c, started := r.c, clock.Now()
	h := w.handlers[c.Type]
	if h == nil {
		e.Kind = EventUnknown
		e.Err = fmt.Errorf("taskqueue: worker %s has no handler for type %q: it is left to others", w.o.name, c.Type)
		return store.Outcome{Ref: c.ref, Kind: store.Unhandled, After: unknownBackoff(c.releases), Error: e.Err.Error()}
	}
	w.tell(Event{Kind: EventStarted, Queue: e.Queue, ID: c.ID, Type: c.Type, Late: started.Sub(c.DueAt)})
	opts := []async.TaskOption{async.Name(runName(c))} // it is in the texts of errors, LastError among them
	if c.Timeout > 0 {
		opts = append(opts, async.Timeout(c.Timeout))
	}
	under, stop := c.lease.Context(w.extract(ctx, c))
	f := async.Start(under, func(ctx context.Context) error { return h(leased{ctx, under, c}, c) }, opts...)
	_, err := f.Join(live)
	cause := context.Cause(under)
	stop()
	o := c.outcome(err, cause, w.backoff)
	e.Kind, e.Err, e.Took = eventOf(o.Kind, cause), err, clock.Now().Sub(started)
	w.took(c.Type, e.Took)
	return o
}

// backoff asks the backoff of the user, whose panic is no reason to lose the outcome.
func (w *worker) backoff(failures int) time.Duration {
	d := DefaultBackoff(failures)
	w.guard("the backoff", func() { d = w.o.backoff(failures) })
	return d
}

// runName is what a run is called in dumps and in errors.
func runName(c *Claim) string { return c.Type + " " + c.ID }

func eventOf(k store.OutcomeKind, cause error) EventKind {
	switch {
	case k == store.Succeeded:
		return EventDone
	case cause == ErrCancelled:
		return EventCancelled
	case k == store.Released, k == store.Snoozed, k == store.Stopped:
		return EventReleased
	}
	return EventFailed
}

// leased is the context of a handler. It looks at the lease each time it is asked, so that a handler
// that was suspended together with its process learns first that the lease is over, before it does
// what it asks for.
type leased struct {
	context.Context
	under context.Context // that of the lease, which cancels the other
	c     *Claim
}

func (l leased) Err() error {
	_ = l.under.Err()
	return l.Context.Err()
}

func (l leased) Done() <-chan struct{} {
	_ = l.under.Err()
	return l.Context.Done()
}

// Value knows the claim, beside what is known around the handler.
func (l leased) Value(key any) any {
	if key == (claimKey{}) {
		return l.c
	}
	return l.Context.Value(key)
}

// often is how long the store hears nothing of the worker at most: it takes a third of a lease for a gap.
func (w *worker) often() time.Duration { return 3 * w.o.lease / 10 }

// extend extends the leases of runs. Each queue has its own keeper of leases, which calls it: the part of
// a store that has another may not answer. Progress that is too much for one step is told with the next.
func (w *worker) extend(ctx context.Context, queue string, runs []lease.Renewal[*run]) ([]error, error) {
	r := store.ExtendRequest{Queue: queue, Worker: w.o.name, Lease: w.o.lease, Progress: map[string][]byte{}}
	room := MaxBatchBytes
	for _, one := range runs {
		c := one.Of.c
		c.mu.Lock()
		if c.moved && len(c.progress) <= room {
			room -= len(c.progress)
			r.Progress[c.ref.ID], c.moved = c.progress, false
		}
		c.mu.Unlock()
		r.Refs = append(r.Refs, c.ref)
	}
	w.tellStuck(queue, runs)
	results, err := w.q.store.Extend(ctx, r)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) { // else nobody needs it any more
			w.tell(Event{Kind: EventStore, Queue: queue, Err: err})
		}
		for _, one := range runs {
			one.Of.c.untold(r.Progress)
		}
		return nil, err
	}
	answers := make([]error, len(runs))
	for i, one := range runs {
		switch results[i] {
		case store.Lost:
			answers[i] = lease.ErrLost
		case store.CancelRequested:
			one.Of.cancel(ErrCancelled)
		}
	}
	return answers, nil
}
