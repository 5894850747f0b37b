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

// Close refuses new tasks, cancels what is pending, and cancels the context of
// the task that runs with [ErrClosed]. It does not wait for that: see
// [ExecutorWorker.Wait]. It never touches the pool. What it drops is no error
// of the worker's scope. Closing again does nothing; Close returns nil.
func (w *ExecutorWorker) Close() error {
	w.close(closing{outcome: Cancelled, cause: ErrClosed})
	return nil
}

func (w *ExecutorWorker) close(how closing) {
	w.noticeEnd()
	w.closeFor(how)
}

func (w *ExecutorWorker) closeFor(how closing) {
	a := afterwards{drops: drops{w: w, reason: reason{how.outcome, how.cause}}}
	w.mu.Lock()
	if how.undone != nil { // what a drain would not have run is not undone
		w.queueDueLocked()
		w.q.dropPeriodic(a.outcome, a.addLocked)
	}
	if n := w.q.dropQueued(a.outcome, a.addLocked); n > 0 {
		a.undone = w.leaveUndoneLocked(n, how.undone, how.cut)
	}
	w.refuseLocked(&a)
	w.mu.Unlock()
	w.stop(how.cause) // before unregister gives another cause
	w.afterwards(&a)
}

// leaveUndoneLocked notes that n tasks that should have run never will, and why.
// It reports true if that is the first of its kind.
func (w *ExecutorWorker) leaveUndoneLocked(n int, why error, cut bool) bool {
	if why == nil || w.undone != nil {
		return false
	}
	w.undone = why
	if _, says := why.(*RejectedError); !says {
		w.undone = &undoneError{worker: w.o.name, tasks: n, err: why}
	}
	if cut {
		w.cutShort = w.undone
	}
	return true
}

// refuseLocked has w accept nothing more and drops what is not due yet.
func (w *ExecutorWorker) refuseLocked(a *afterwards) {
	w.refusing = true
	w.q.dropDelayed(a.outcome, a.addLocked)
	w.stopTickLocked()
	w.refuseBlockedLocked(a.cause)
	w.armLocked()
	a.ended = w.noteIdleLocked()
}

// startDraining has w accept nothing more and cancels what is not due yet and
// what is periodic. It returns what has cut w short before.
func (w *ExecutorWorker) startDraining() (before error) {
	w.noticeEnd()
	a := afterwards{drops: drops{w: w, reason: reason{Cancelled, ErrClosed}}}
	w.mu.Lock()
	before = w.cutShort
	w.queueDueLocked()
	w.q.dropPeriodic(a.outcome, a.addLocked)
	w.refuseLocked(&a)
	a.wake = w.wakeLocked()
	w.unlock(a)
	return before
}

// Drain refuses new tasks, cancels what is not due yet and what is periodic,
// runs the rest, and blocks until that has ended; the worker is closed then. If
// ctx is done before, it closes the worker and returns the cause of ctx
// without waiting for the task that runs. With the ctx of a task of the worker
// it returns [ErrSelfWait] and does nothing.
//
// A drain that is cut short from elsewhere, by another Drain whose ctx is done
// or by the end of the worker's ctx or of the pool, returns an error that wraps
// the cause, if tasks were left undone. What Close or CancelPending takes out of
// the queue on purpose is no error. What the pool refuses, and what a panic
// with [CloseOnPanic] leaves, has its outcome and is none of Drain's; the
// worker's scope is told. Drain of a worker that has ended returns nil.
func (w *ExecutorWorker) Drain(ctx context.Context) error {
	if InWorker(ctx, w) {
		return ErrSelfWait
	}
	return w.drained(ctx, w.startDraining())
}

// drained waits until w, which is being drained, has ended.
func (w *ExecutorWorker) drained(ctx context.Context, before error) error {
	if err := w.Wait(ctx); err != nil {
		w.close(closing{outcome: Cancelled, cause: ErrClosed, undone: err, cut: true})
		return err
	}
	w.s.remove(w) // the goroutine that has ended it may not have come to that yet
	w.mu.Lock()
	defer w.mu.Unlock()
	if before != nil {
		return nil // the drains that waited then were told
	}
	return w.cutShort
}

// refused rejects what is queued, because the pool would not have w. What is
// delayed has its own chance.
func (w *ExecutorWorker) refused(err error) {
	w.noticeEnd()
	admits := w.admits()
	rejected := &RejectedError{Worker: w.o.name, Err: err}
	a := afterwards{drops: drops{w: w, reason: reason{Rejected, rejected}}}
	w.mu.Lock()
	if n := w.q.dropQueued(a.outcome, a.addLocked); n > 0 && w.refusing {
		a.undone = w.leaveUndoneLocked(n, rejected, false)
	}
	a.ended = w.releaseLocked()
	a.wake = w.admitBlockedLocked(admits)
	w.unlock(a)
}

// releaseLocked notes that nobody will look at w, whose queue is empty. It
// reports true if cleanUp is to be called.
func (w *ExecutorWorker) releaseLocked() (ended bool) {
	w.active, w.hasGoroutine = false, false
	return w.noteIdleLocked()
}
