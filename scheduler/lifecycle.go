package scheduler

import (
	"context"
)

// This file is how a worker is emptied, waited for, and ends.

// aftermath is what is to be done without the lock after something was done
// with it.
type aftermath struct {
	wake    bool // tell the scheduler that there is something to do
	over    bool // w has come to its end
	lost    []loss
	outcome State // of lost, and why
	cause   error
}

// unlock unlocks w.mu and does what a says.
func (w *ExecutorWorker) unlock(a aftermath) {
	w.mu.Unlock()
	if a.wake {
		defer w.s.need(w) // also if an observer panics
	}
	if a.over {
		w.ended()
	}
	w.tell(a.lost, a.outcome, a.cause)
}

// CancelPending cancels everything that has not started, delayed and periodic
// tasks included, and returns how many. What has run is a prefix of what was
// scheduled. The task that runs is left alone, a periodic one is not run again,
// and the worker goes on. It does not block.
func (w *ExecutorWorker) CancelPending() int {
	a := aftermath{outcome: Cancelled, cause: ErrCancelled}
	w.mu.Lock()
	count := w.q.claimReady(a.outcome, w.lose(&a)) + w.q.claimDelayed(a.outcome, w.lose(&a))
	w.stopTickLocked()
	w.armLocked()
	a.wake = w.admitLocked()
	a.over = w.quietLocked()
	w.unlock(a)
	return count
}

// lose returns a function that adds nodes to what a has lost.
func (w *ExecutorWorker) lose(a *aftermath) func(*node) {
	return func(n *node) { a.lost = w.loseLocked(a.lost, n) }
}

// stopTickLocked has the periodic task that runs, or is about to, not run again.
// What else of the batch is pending was claimed before.
func (w *ExecutorWorker) stopTickLocked() {
	for i := w.q.from; i < w.q.end; i++ {
		if n := w.q.head.entries[i].n; n != nil && n.period != nil && n.status() <= Running {
			n.period.stopped = true
		}
	}
}

// Close refuses new tasks, cancels what is pending, and cancels the context of
// the task that runs with [ErrClosed]. It does not wait for that: see
// [ExecutorWorker.Wait]. It never touches the pool. Closing again does nothing;
// Close returns nil.
func (w *ExecutorWorker) Close() error {
	w.close(ErrClosed, Cancelled)
	return nil
}

// close ends w: outcome is what becomes of pending tasks.
func (w *ExecutorWorker) close(cause error, outcome State) {
	a := aftermath{outcome: outcome, cause: cause}
	w.mu.Lock()
	w.q.claimReady(a.outcome, w.lose(&a))
	w.refuseLocked(&a)
	w.mu.Unlock()
	w.stop(cause) // before ended gives another cause
	if a.over {
		w.ended()
	}
	w.tell(a.lost, a.outcome, a.cause)
}

// refuseLocked has w accept nothing more and loses what is not due yet.
func (w *ExecutorWorker) refuseLocked(a *aftermath) {
	w.refusing = true
	w.q.claimDelayed(a.outcome, w.lose(a))
	w.stopTickLocked()
	w.refuseBlockedLocked()
	w.armLocked()
	a.over = w.quietLocked()
}

// poolEnded ends w, whose pool will run nothing more. A goroutine that is at it
// goes on until its task has returned.
func (w *ExecutorWorker) poolEnded(cause error) {
	w.close(&RejectedError{Worker: w.o.name, Err: cause}, Rejected)
}

// refused rejects what is queued, because the pool would not have w. What is
// delayed has its own chance.
func (w *ExecutorWorker) refused(err error) {
	a := aftermath{outcome: Rejected, cause: &RejectedError{Worker: w.o.name, Err: err}}
	w.mu.Lock()
	w.q.claimReady(a.outcome, w.lose(&a))
	a.over = w.restLocked()
	a.wake = w.admitLocked()
	w.unlock(a)
}

// restLocked notes that nobody will look at w, and is quietLocked.
func (w *ExecutorWorker) restLocked() (over bool) {
	w.active, w.drained = false, false
	return w.quietLocked()
}

// quietLocked tells who waits if w is idle: if nothing is queued and nobody is at
// it, whether or not a goroutine of the pool is still to come for it. It
// reports true, once, if w has come to its end with that: ended is to be called.
func (w *ExecutorWorker) quietLocked() (over bool) {
	if !w.isIdleLocked() {
		return false
	}
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	over = w.refusing && !w.closed
	w.closed = w.closed || over
	return over
}

func (w *ExecutorWorker) isIdleLocked() bool { return w.q.length == 0 && !w.drained }

// ended takes a closed worker off everything it is registered with.
func (w *ExecutorWorker) ended() {
	w.stop(ErrClosed)
	w.mu.Lock()
	unbind := w.unbind
	w.mu.Unlock()
	if unbind != nil {
		unbind()
	}
	if w.bond != nil {
		w.bond.w.Store(nil)
	}
	w.s.remove(w)
}

// refuse has w accept nothing more and cancels what is not due yet and what is
// periodic.
func (w *ExecutorWorker) refuse() {
	a := aftermath{outcome: Cancelled, cause: ErrClosed}
	w.mu.Lock()
	w.ripenLocked()
	w.q.claimPeriodic(a.outcome, w.lose(&a))
	w.refuseLocked(&a)
	a.wake = w.wakeLocked()
	w.unlock(a)
}

// Drain refuses new tasks, cancels what is not due yet and what is periodic,
// runs the rest, and blocks until that has ended; the worker is closed then. If
// ctx is done before, it closes the worker and returns the cause of ctx
// without waiting for the task that runs. With the ctx of a task of the worker
// it returns [ErrSelfWait] and does nothing.
func (w *ExecutorWorker) Drain(ctx context.Context) error {
	if InWorker(ctx, w) {
		return ErrSelfWait
	}
	w.refuse()
	if err := w.Wait(ctx); err != nil {
		_ = w.Close()
		return err
	}
	w.s.remove(w) // whoever has ended it may not have come to that yet
	return nil
}

// Wait blocks until nothing is queued and no task runs, or returns the cause of
// ctx when that is done before. It does not wait for what is not due yet. With
// the ctx of a task of the worker it returns [ErrSelfWait].
func (w *ExecutorWorker) Wait(ctx context.Context) error {
	if InWorker(ctx, w) {
		return ErrSelfWait
	}
	w.mu.Lock()
	if w.isIdleLocked() {
		w.mu.Unlock()
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Closed reports whether the worker accepts nothing more. It does not block.
func (w *ExecutorWorker) Closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusing
}

// Len returns how many tasks have not started, delayed and periodic ones
// included. It does not block.
func (w *ExecutorWorker) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.q.pending()
}

// Stats are counts of a worker. Scheduled is the sum of the outcomes, Pending,
// and 1 if a task runs.
type Stats struct {
	Scheduled   uint64 // tasks that were accepted
	Done        uint64
	Cancelled   uint64
	Rejected    uint64
	Panicked    uint64
	Exited      uint64
	Pending     int // queued, delayed and periodic
	Delayed     int // of these, not due yet
	Running     bool
	Ticks       uint64 // runs of periodic tasks that have returned
	Activations uint64 // how often a goroutine of the pool has come for it
}

// Stats returns the counts, as of one instant. It does not block.
func (w *ExecutorWorker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := w.q.ended
	st := Stats{Scheduled: w.q.seq, Delayed: len(w.q.heap), Ticks: w.ticks, Activations: w.activated}
	st.Pending, st.Running = w.q.tally(&counts)
	st.Done, st.Cancelled, st.Rejected = counts[Done], counts[Cancelled], counts[Rejected]
	st.Panicked, st.Exited = counts[Panicked], counts[Exited]
	return st
}
