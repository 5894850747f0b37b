package taskqueue

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// A run is a claimed task, from its claim until it is settled.
type run struct {
	c        *Claim
	cancel   context.CancelCauseFunc
	deadline *time.Timer // its lease is over
	end      atomic.Pointer[time.Time]
	phase    atomic.Int32 // decided once: ended and gone exclude each other
	vacated  bool         // its place is free already; guarded by the worker's mu
	started  time.Time
	stuck    bool // it was told that it lasts for long; only tellStuck looks
}

// The phases of a run.
const (
	running int32 = iota
	ended         // the handler, and all that it has started: the outcome is to be settled
	gone          // the lease was lost before that: nothing is settled
)

func (r *run) gone() bool { return r.phase.Load() == gone }

// begin starts what was claimed. before is the time before the claim was sent: the
// lease lasts at least from then.
func (w *worker) begin(live context.Context, queue string, t *Info, before time.Time) {
	c := &Claim{Task: t.Task, Attempt: t.Attempt, Failures: t.Failures, Crashes: t.Crashes, Token: t.Token, DueAt: t.DueAt, releases: t.Releases, shared: w.q.shared}
	h := w.handlers[t.Type]
	ctx, cancel := context.WithCancelCause(w.home)
	r := &run{c: c, cancel: cancel, started: clock.Now()}
	r.deadline = time.AfterFunc(time.Hour, r.lose)
	r.lasts(before.Add(w.o.lease)) // before it is seen: an extension is for longer
	w.mu.Lock()
	w.runs[runKey{queue, Ref{t.ID, t.Token}}] = r
	stopping := w.stopping
	w.mu.Unlock()
	if stopping {
		cancel(ErrStopping)
	}
	async.Go(live, func(live context.Context) error {
		o, e := w.handle(live, ctx, queue, r, h)
		if e.Took > 0 {
			w.took(c.Type, e.Took)
		}
		released := false
		if r.phase.CompareAndSwap(running, ended) {
			w.vacate(runKey{queue, o.Ref})
			released = w.settle(live, queue, o, &e)
		} else {
			e.Kind = EventLost
		}
		w.sum(queue, &e, r.started.Sub(c.DueAt))
		r.deadline.Stop()
		cancel(nil)
		w.tell(e)
		if e.Kind == EventFailed && (o.Kind == Buried || c.Failures+1 >= c.MaxFailures) {
			e.Kind = EventDead
			w.tell(e)
		}
		if !released {
			w.release(queue, o.Ref)
		}
		return nil
	}, async.Name(runName(c)))
}

// handle runs the handler as a task. When that and everything it has started have
// ended it returns what is to be told to the store, and to the observer after that.
// ctx is that of the handler, live our own.
func (w *worker) handle(live, ctx context.Context, queue string, r *run, h Handler) (Outcome, Event) {
	c, started := r.c, clock.Now()
	ref := Ref{c.ID, c.Token}
	e := Event{Queue: queue, ID: c.ID, Type: c.Type}
	if h == nil {
		e.Kind, e.Err = EventUnknown, fmt.Errorf("taskqueue: worker %s has no handler for type %q: it is left to others", w.o.name, c.Type)
		return Outcome{Ref: ref, Kind: Unhandled, After: unknownBackoff(c.releases), Error: e.Err.Error()}, e
	}
	if r.look(); r.gone() { // the answer of the claim took too long
		return Outcome{Ref: ref}, e
	}
	w.tell(Event{Kind: EventStarted, Queue: queue, ID: c.ID, Type: c.Type, Late: started.Sub(c.DueAt)})
	opts := []async.TaskOption{async.Name(runName(c))} // it is in the texts of errors, LastError among them
	if c.Timeout > 0 {
		opts = append(opts, async.Timeout(c.Timeout))
	}
	f := async.Start(ctx, func(ctx context.Context) error { return h(leased{ctx, r}, c) }, opts...)
	_, err := f.Join(live)
	cause := context.Cause(ctx)
	o := c.outcome(err, cause, w.backoff)
	e.Kind, e.Err, e.Took = eventOf(o.Kind, cause), err, clock.Now().Sub(started)
	return o, e
}

// backoff asks the backoff of the user, whose panic is no reason to lose the outcome.
func (w *worker) backoff(failures int) time.Duration {
	d := DefaultBackoff(failures)
	w.guard("the backoff", func() { d = w.o.backoff(failures) })
	return d
}

// runName is what a run is called in dumps and in errors.
func runName(c *Claim) string { return c.Type + " " + c.ID }

func eventOf(k OutcomeKind, cause error) EventKind {
	switch {
	case k == Succeeded:
		return EventDone
	case cause == ErrCancelled:
		return EventCancelled
	case k == Released, k == Snoozed, k == Stopped:
		return EventReleased
	}
	return EventFailed
}

// lasts notes until when the lease of r lasts, by the steady clock. The context of the handler ends a
// little before.
func (r *run) lasts(until time.Time) {
	left := until.Sub(clock.Steady())
	r.c.mu.Lock()
	r.c.deadline = clock.FromSteady(until)
	r.c.mu.Unlock()
	r.end.Store(&until)
	r.deadline.Reset(left - left/20)
}

// look finds out whether the lease is over. After the process was stopped the timer is
// late, and after the machine was suspended it is later still: timers stand still then.
func (r *run) look() {
	if until := r.end.Load(); until != nil && !clock.Steady().Before(*until) {
		r.lose()
	}
}

// leased is the context of a handler. It looks at the lease each time it is asked, so
// that a handler that was suspended together with its process learns first that the
// lease is over, before it does what it asks for.
type leased struct {
	context.Context
	r *run
}

func (l leased) Err() error {
	l.r.look()
	return l.Context.Err()
}

func (l leased) Done() <-chan struct{} {
	l.r.look()
	return l.Context.Done()
}

// Value knows the claim, beside what is known around the handler.
func (l leased) Value(key any) any {
	if key == (claimKey{}) {
		return l.r.c
	}
	return l.Context.Value(key)
}

// lose cancels a run whose lease is over. One whose handler has ended goes on to be
// settled: that counts as long as nobody else has begun it.
//
// Whoever finds that it is gone cancels it, too: the goroutine that has noted it may not have
// come to that yet, and a handler that asks must not go on meanwhile.
func (r *run) lose() {
	if r.phase.CompareAndSwap(running, gone) || r.gone() {
		r.cancel(ErrLeaseLost)
	}
}

// keepLeases extends the leases of what runs of a queue, a little more often than every
// third of a lease: a store takes more than that for a gap. Each queue is looked after
// by itself: the part of a store that has another may not answer.
func (w *worker) keepLeases(ctx context.Context, queue string) error {
	for sleep(ctx, w.often()) == nil {
		var runs []*run
		w.mu.Lock()
		for k, r := range w.runs {
			if k.queue == queue {
				runs = append(runs, r)
			}
		}
		w.mu.Unlock()
		// A task that is lost is to become another worker's, also what we find out just now. The
		// time is taken first: a suspend behind the look shortens the new lease.
		before := clock.Steady()
		runs = slices.DeleteFunc(runs, func(r *run) bool { r.look(); return r.gone() })
		w.tellStuck(queue, runs)
		for len(runs) > 0 {
			runs = runs[w.extend(ctx, queue, runs, before):]
		}
	}
	return nil
}

// often is how long the store hears nothing of the worker at most.
func (w *worker) often() time.Duration { return 3 * w.o.lease / 10 }

// extend extends the first leases of runs, as many as one step may, and returns how
// many that are. The new leases count from before.
func (w *worker) extend(ctx context.Context, queue string, runs []*run, before time.Time) int {
	r := ExtendRequest{Queue: queue, Worker: w.o.name, Lease: w.o.lease, Progress: map[string][]byte{}}
	for size := 0; len(r.Refs) < min(len(runs), MaxBatch); {
		c := runs[len(r.Refs)].c
		c.mu.Lock()
		if c.moved {
			if size += len(c.progress); size > MaxBatchBytes {
				c.mu.Unlock()
				break
			}
			r.Progress[c.ID], c.moved = c.progress, false
		}
		c.mu.Unlock()
		r.Refs = append(r.Refs, Ref{c.ID, c.Token})
	}
	runs = runs[:len(r.Refs)]
	call, cancel := context.WithTimeout(ctx, min(callTimeout, w.o.lease/3))
	defer cancel()
	results, err := w.q.store.Extend(call, r)
	if err != nil {
		if ctx.Err() == nil {
			w.tell(Event{Kind: EventStore, Queue: queue, Err: err})
		}
		for _, one := range runs {
			one.c.untold(r.Progress)
		}
		return len(runs)
	}
	for i, one := range runs {
		switch results[i] {
		case Lost:
			one.lose()
		case CancelRequested:
			one.cancel(ErrCancelled)
			fallthrough
		default:
			one.lasts(before.Add(w.o.lease))
		}
	}
	return len(runs)
}
