package scheduler

import "context"

// This file is how a worker ends: at once, or when it has done what it has.

// A closing says how a worker is closed.
type closing struct {
	outcome State // of the tasks that never run
	cause   error // of them, and of the context of the one that runs
	undone  error // why tasks never run that should have; nil: they are dropped on purpose
	cut     bool  // Drain is told of that, too: it was cut short, from outside
}

// Close refuses new tasks, cancels what is pending, and cancels the context of the task
// that runs with [ErrClosed].
//
//	_ = w.Close()
//
// # Details
//
// Close does not wait for the task that runs: see [ExecutorWorker.Wait]. It never touches
// the pool. A task that it drops is no error of the worker's scope. Closing again does
// nothing; Close returns nil.
func (w *ExecutorWorker) Close() error {
	w.close(closing{outcome: Cancelled, cause: ErrClosed})
	return nil
}

func (w *ExecutorWorker) close(how closing) {
	w.noticeEnd()
	w.closeFor(how)
}

func (w *ExecutorWorker) closeFor(how closing) {
	a := w.dropping(how.outcome, how.cause)
	w.mu.Lock()
	if how.undone != nil { // what a drain would not have run is not undone
		w.queueDueLocked()
		w.q.dropPeriodic(a.outcome, a.addLocked)
	}
	a.undone = w.leaveUndoneLocked(w.q.dropQueued(a.outcome, a.addLocked), how.undone, how.cut)
	w.refuseLocked(&a)
	w.mu.Unlock()
	w.stop(how.cause) // before unregister gives another cause
	w.afterwards(&a)
}

// leaveUndoneLocked notes that n tasks that should have run never will, and why. It reports
// true if the scope is to be told: nil is no reason, they were dropped on purpose.
func (w *ExecutorWorker) leaveUndoneLocked(n int, why error, cut bool) bool {
	return why != nil && n > 0 && w.life.leaveUndone(&undoneError{worker: w.o.name, tasks: n, err: why}, cut)
}

// refuseLocked has w accept nothing more and drops what is not due yet.
func (w *ExecutorWorker) refuseLocked(a *afterwards) {
	w.life.refusing = true
	w.q.dropDelayed(a.outcome, a.addLocked)
	w.q.stopTick()
	w.room.refuse(a.cause)
	w.armLocked()
	a.ended = w.noteIdleLocked()
}

// startDraining has w accept nothing more and cancels what is not due yet and
// what is periodic. It returns what has cut w short before.
func (w *ExecutorWorker) startDraining() (before error) {
	w.noticeEnd()
	a := w.dropping(Cancelled, ErrClosed)
	w.mu.Lock()
	before = w.life.cutShort
	w.queueDueLocked()
	w.q.dropPeriodic(a.outcome, a.addLocked)
	w.refuseLocked(&a)
	a.wake = w.life.wake(w.q.length)
	w.unlock(&a)
	return before
}

// Drain refuses new tasks, cancels what is not due yet and what is periodic, runs the
// rest, and blocks until that has ended; the worker is closed then.
//
//	err := w.Drain(ctx)
//
// # Details
//
// If ctx is done before, Drain closes the worker and returns the cause of ctx without
// waiting for the task that runs. With the ctx of a task of the worker it returns
// [ErrSelfWait], with that of a task that the worker waits for async.ErrAwaitCycle, and
// does nothing.
//
// A drain that is cut short from elsewhere, by another Drain whose ctx is done or by the
// end of the worker's ctx or of the pool, returns an error that wraps the cause, if tasks
// were left undone. A task that Close or CancelPending takes out of the queue on purpose
// is no error. A task that the pool refuses, or that a panic with [CloseOnPanic] leaves,
// has its outcome and is none of Drain's; the worker's scope is told. Drain of a worker
// that has ended returns nil.
func (w *ExecutorWorker) Drain(ctx context.Context) error {
	left, err := w.mayWait(ctx)
	if err != nil {
		return err
	}
	defer left()
	return w.drained(ctx, w.startDraining())
}

// drained waits until w, which is being drained, has ended.
func (w *ExecutorWorker) drained(ctx context.Context, before error) error {
	if err := w.wait(ctx); err != nil {
		w.close(closing{outcome: Cancelled, cause: ErrClosed, undone: err, cut: true})
		return err
	}
	w.d.remove(&w.seat) // the goroutine that has ended it may not have come to that yet
	w.mu.Lock()
	defer w.mu.Unlock()
	if before != nil {
		return nil // the drains that waited then were told
	}
	return w.life.cutShort
}

// refused rejects what is queued, because the pool would not have w. A delayed task has
// its own chance.
func (w *ExecutorWorker) refused(err error) {
	w.noticeEnd()
	admits := w.admits()
	rejected := &RejectedError{Worker: w.o.name, Err: err}
	a := w.dropping(Rejected, rejected)
	w.mu.Lock()
	n := w.q.dropQueued(a.outcome, a.addLocked)
	a.undone = w.life.refusing && w.leaveUndoneLocked(n, rejected, false)
	w.life.depart(0) // nobody will look at it
	a.ended = w.noteIdleLocked()
	a.wake = w.admitBlockedLocked(admits)
	w.unlock(&a)
}
