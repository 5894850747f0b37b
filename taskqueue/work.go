package taskqueue

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Work claims tasks and runs them with the handlers, until ctx is done. Then no more
// are claimed; those that run have the ShutdownGrace, then their contexts are
// cancelled with [ErrStopping]. Work returns when all have ended and the store knows
// how: those that were stopped have been given back, without an attempt spent.
// Nothing of them runs after Work has returned.
//
// Each task runs in a scope of package async of its own, which belongs to the scope
// of ctx, if there is one: a Limit or an Executor of that holds for handlers, and not
// for what the worker does beside. A worker extends the leases of what runs. One that
// could not do so in time, or that learns that a task is another worker's, cancels the
// context of the task with [ErrLeaseLost] and never settles it; the place stays
// taken until the handler has returned.
//
// Tasks of a type without a handler are given back, for workers that have one: without
// an attempt spent, after a wait that grows from 1 s to 1 min. The observer, Stats and
// the task itself say so.
//
// Work may be called any number of times, at the same time and by any number of
// processes; each call is a worker of its own. One whose ctx is done claims nothing.
// Handlers may call the queue, add tasks to it, and work on it.
//
// The error is nil if Work was stopped and everything is settled; an [*InvalidError]
// for what it was given; [ErrClosed] if the store was closed; or an [*UnsettledError]
// if the store could not be told of the end of some tasks: it is asked for a lease's
// time. A panic of an observer or a backoff goes on in Work when all is settled.
func (q *Queue) Work(ctx context.Context, handlers Handlers, opts ...WorkOption) error {
	o, err := newWorkOptions(q, opts)
	if err != nil {
		return err
	}
	if len(handlers) == 0 {
		return invalid("Handlers", "there is none: name at least one type of task, or all tasks would be given back")
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		if handlers[name] == nil {
			return invalid("Handlers", "that of %q is nil: pass a function, or leave the type out", name)
		}
	}
	if ctx.Err() != nil {
		return nil // nothing is claimed for nobody
	}
	w := &worker{
		q: q, o: o, until: ctx, handlers: maps.Clone(handlers), free: o.concurrency, nonce: rand.Text()[:8] + "/", clock: newClock(),
		runs: map[runKey]*run{}, times: map[string]*sums.Spread{}, sums: map[string]map[string]*sums.Sums{},
		idle: map[string]bool{}, changed: make(chan struct{}),
		settles: map[string]*group.Group[*settlement]{}, keepers: map[string]*lease.Keeper[*run]{}, shares: newShares(o.weights, o.concurrency),
	}
	for name := range o.weights {
		w.settles[name] = group.New(MaxBatch, 1, nil, func(all []*settlement) error { return w.settleAll(name, all) })
	}
	// A resource that the worker needs until the last task is settled is not cancelled with ctx. Its
	// own tasks are not in the scope of the handlers, since that may be bounded by a Limit
	// or run on a pool: leases must be extended all the same.
	err = async.Scope(context.WithoutCancel(ctx), func(home context.Context) error {
		w.home = home
		f := async.Start(context.Background(), func(live context.Context) error { return w.work(ctx, live) }, async.Name("taskqueue worker"))
		_, err := f.Join(home)
		if len(w.lost) == 0 { // else the store does not answer
			w.noteSums(home) // of every run: all have been told of by now
		}
		return err
	}, async.Name("worker"))
	if b, is := w.failed.(*broken); is {
		panic(b)
	}
	return err
}

// An UnsettledError names tasks that have ended, which the store could not be told.
// They will run again when their leases have run out.
type UnsettledError struct {
	IDs []string
	Err error // of the last attempt
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("taskqueue: the store could not be told how these tasks ended, they will run again: %s: %v", strings.Join(e.IDs, ", "), e.Err)
}

func (e *UnsettledError) Unwrap() error { return e.Err }

var workers atomic.Int64

func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%.64s:%d:%d", host, os.Getpid(), workers.Add(1))
}

// newClock makes the clock of the leases of a worker. Tests have it jump.
var newClock = lease.NewClock

// A worker is one call of Work.
type worker struct {
	q        *Queue
	o        *workOptions
	handlers Handlers
	until    context.Context // that of Work: when it is done nothing more is claimed
	home     context.Context // of the scope in which handlers run
	// nonce begins those of all claims, and is drawn: a process that is started again in
	// its container has the name and the number of the one that has died. With its nonces,
	// too, it would be given what that has left, as the answer to a claim that is repeated,
	// and no crash would be counted.
	nonce string
	clock *lease.Clock

	mu      sync.Mutex
	runs    map[runKey]*run
	times   map[string]*sums.Spread          // by type: how long runs have lasted
	sums    map[string]map[string]*sums.Sums // by queue and type, that are not noted yet
	free    int                              // places
	changed chan struct{}                    // closed, and replaced, when something here has changed and waited is set
	waited  bool                             // somebody waits for changed
	// unsettled is how many runs have given their places back and are not settled. It is
	// at most the concurrency times mostUnsettled.
	unsettled int
	ended     []runKey          // of which the handlers have ended, and that have their places yet: the first comes first
	idle      map[string]bool   // queues that had nothing due when they were asked last, and since then no run has ended
	ends      int               // of runs, so far
	shares    map[string]*share // of the places, by queue
	settles   map[string]*group.Group[*settlement]
	keepers   map[string]*lease.Keeper[*run] // by queue
	lost      []string                       // ids that could not be settled
	lostErr   error
	failed    error                   // the first thing that makes it useless to go on, or a *broken
	stop      context.CancelCauseFunc // stops the claiming
	// stopping: what runs has been told to stop.
	stopping bool
}

// A runKey names a run. A task may have two at a time: one that has lost its lease and
// does not care, and its successor.
type runKey struct {
	queue string
	ref   store.Ref
}

// work is the body of Work.
func (w *worker) work(ctx, live context.Context) error {
	claiming, stop := context.WithCancelCause(live)
	defer stop(nil)
	w.stop = stop
	defer context.AfterFunc(ctx, func() { stop(ErrStopping) })()

	if w.o.untilEmpty {
		async.Go(live, func(ctx context.Context) error { w.awaitEmpty(claiming); stop(ErrStopping); return nil }, async.Daemon())
	}
	w.q.shared.mu.Lock()
	for _, p := range w.q.shared.periodic {
		async.Go(live, func(ctx context.Context) error { return w.tick(ctx, p) }, async.Daemon(), async.Name("every "+p.name))
	}
	w.q.shared.mu.Unlock()
	async.Go(live, w.keepSums, async.Daemon(), async.Name("keep sums"))
	var fetchers []*async.Future[struct{}]
	for name := range w.o.weights {
		w.keepers[name] = lease.NewKeeper(live, func(ctx context.Context, runs []lease.Renewal[*run]) ([]error, error) {
			return w.extend(ctx, name, runs)
		}, lease.WithClock(w.clock), lease.Most(MaxBatch), lease.Name("leases of "+name))
	}
	for name := range w.o.weights {
		f := &fetcher{w: w, queue: name}
		fetchers = append(fetchers, async.Start(claiming, func(ctx context.Context) error { f.loop(ctx, live); return nil }, async.Name("fetch "+name)))
	}
	for _, f := range fetchers {
		_, _ = f.Join(live) // they only stop
	}
	w.finish(live)
	for _, g := range w.settles {
		g.Idle() // its goroutine ends, too
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lost) > 0 {
		slices.Sort(w.lost)
		return &UnsettledError{w.lost, w.lostErr}
	}
	return w.failed
}

// fail has the worker stop because of err, which is what Work ends with.
func (w *worker) fail(err error) {
	w.mu.Lock()
	if w.failed == nil {
		w.failed = err
	}
	w.mu.Unlock()
	w.stop(ErrStopping)
}

// finish waits for what runs, at first with patience.
func (w *worker) finish(live context.Context) {
	patience, cancel := context.WithTimeout(live, w.o.grace)
	defer cancel()
	if w.await(patience, func() bool { return len(w.runs) == 0 }) {
		return
	}
	w.mu.Lock()
	w.stopping = true
	runs := slices.Collect(maps.Values(w.runs))
	w.mu.Unlock()
	for _, r := range runs {
		r.cancel(ErrStopping)
	}
	w.await(live, func() bool { return len(w.runs) == 0 })
}

// awaitEmpty waits until nothing runs and every queue has said that nothing is due.
func (w *worker) awaitEmpty(ctx context.Context) {
	for w.await(ctx, func() bool { return len(w.runs) == 0 && len(w.idle) == len(w.o.weights) }) {
		if !w.heldBack(ctx) {
			return
		}
		w.change(func() { clear(w.idle) }) // until the next claims
	}
}

// heldBack reports whether something is due that a limit keeps from being claimed.
func (w *worker) heldBack(ctx context.Context) bool {
	for name := range w.o.weights {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		s, err := w.q.store.Stats(call, name)
		cancel()
		if err != nil || s.States[StateReady] > 0 && !s.Settings.Paused {
			return true
		}
	}
	return false
}

// await waits until f says so, which is called with w locked, or ctx is done.
func (w *worker) await(ctx context.Context, f func() bool) bool {
	for {
		w.mu.Lock()
		ok, changed := f(), w.changed
		w.waited = w.waited || !ok
		w.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// change changes the state of w by f and wakes those who wait for that.
func (w *worker) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.wakeLocked()
}

func (w *worker) wakeLocked() {
	if w.waited {
		close(w.changed)
		w.changed, w.waited = make(chan struct{}), false
	}
}
