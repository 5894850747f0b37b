package scheduler

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"
)

// An ExecutorWorker runs what is scheduled on it in order, one at a time, on
// goroutines of its scheduler's pool. While it has nothing to do it holds no
// goroutine, no timer and no place in the pool. Any number of goroutines may
// use it, tasks of its own included.
type ExecutorWorker struct {
	d      *dispatcher
	seat   seat
	vertex vertex
	pool   context.Context // whose end is the pool's; nil if nobody tells of that
	o      workerOptions
	outer  context.Context         // what it was made with; nil if that is never done
	scope  context.Context         // the scope that it ends with; nil if there is none
	ctx    context.Context         // what the contexts of tasks are children of
	stop   context.CancelCauseFunc // cancels ctx

	// scopeTold: the scope has been told of undone. It is set with the scope locked.
	scopeTold atomicBool

	began time.Duration // when the task that runs began, if observed; only for the drain

	mu mutex // guards what follows; no code of users is called with it held
	q  queue

	life lifecycle
	room capacity

	unwatch   func() bool         // ends the look at outer
	atEnd     bridge.Registration // in scope
	alarm     alarm
	idle      chan struct{} // closed when w is idle next; nil if nobody waits
	ended     chan struct{} // closed when over is set; nil if nobody waits
	ticks     uint64
	activated uint64
}

type workerKey struct{ w *ExecutorWorker }

// InWorker reports whether ctx is that of a task of w, or derived from one.
//
//	if scheduler.InWorker(ctx, w) {
//		return state // no need to ask w
//	}
func InWorker(ctx context.Context, w *ExecutorWorker) bool {
	return ctx.Value(workerKey{w}) != nil
}

// watch has w closed when the ctx that it was made with is done.
func (w *ExecutorWorker) watch() {
	if w.outer == nil {
		return
	}
	unwatch := context.AfterFunc(w.outer, w.noticeEnd)
	w.mu.Lock()
	w.unwatch = unwatch
	closed := w.life.closed
	w.mu.Unlock()
	if closed {
		unwatch()
	}
}

// isCancelled reports whether the ctx that w was made with is done. It is asked
// before each task, and whenever one is to be accepted: context.AfterFunc calls
// noticeEnd only a little later. It calls a method of a user's context, so no
// lock is held.
func (w *ExecutorWorker) isCancelled() bool {
	return w.outer != nil && w.outer.Err() != nil
}

// noticeEnd closes w if its ctx is done, or the pool's. Whoever takes tasks out of the
// queue calls it first, with no lock held: from that moment on what is pending is left
// undone for that, and is not taken out for another reason, though context.AfterFunc
// may come later. So what the scope and Drain are told does not depend on which of
// the two is faster. A goroutine of the pool that is at w goes on until its task has
// returned.
func (w *ExecutorWorker) noticeEnd() {
	switch pool := w.pool; {
	case w.isCancelled():
		cause := context.Cause(w.outer)
		w.closeFor(closing{outcome: Cancelled, cause: cause, undone: cause, cut: true})
	case pool != nil && pool.Err() != nil:
		err := &RejectedError{Worker: w.o.name, Err: context.Cause(pool)}
		w.closeFor(closing{outcome: Rejected, cause: err, undone: err, cut: true})
	}
}

// Closed reports whether the worker accepts nothing more. It does not block.
func (w *ExecutorWorker) Closed() bool {
	if w.isCancelled() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life.refusing
}

// Len returns how many tasks have not started, delayed and periodic ones
// included. It does not block.
func (w *ExecutorWorker) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.q.pending()
}

// Wait blocks until nothing is queued and no task runs, or returns the cause of ctx when
// that is done before.
//
//	err := w.Wait(ctx)
//
// # Details
//
// Wait does not wait for what is not due yet. With the ctx of a task of the worker it
// returns [ErrSelfWait], with that of a task that the worker waits for
// async.ErrAwaitCycle.
func (w *ExecutorWorker) Wait(ctx context.Context) error {
	left, err := w.mayWait(ctx)
	if err != nil {
		return err
	}
	defer left()
	return w.wait(ctx)
}

// mayWait returns an error if a wait with ctx for w to be idle could never end. Otherwise
// left is called when the wait has ended.
func (w *ExecutorWorker) mayWait(ctx context.Context) (left func(), err error) {
	left, err = w.vertex.awaited(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.life.isIdle(w.q.length)
	})
	if left == nil {
		left = func() {}
	}
	return left, err
}

// wait blocks until w is idle or ctx is done.
func (w *ExecutorWorker) wait(ctx context.Context) error {
	w.mu.Lock()
	if w.life.isIdle(w.q.length) {
		w.mu.Unlock()
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	return waitFor(idle, ctx)
}

// noteIdleLocked wakes all calls that wait for w to be idle, if it is. It reports
// true, once, if w has come to its end with that: cleanUp is to be called.
func (w *ExecutorWorker) noteIdleLocked() (ended bool) {
	idle, ended := w.life.settle(w.q.length)
	if idle && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	return ended
}
