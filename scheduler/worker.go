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
	s     *Scheduler
	o     workerOptions
	outer context.Context         // what it was made with; nil if that is never done
	scope context.Context         // the scope that it ends with; nil if there is none
	ctx   context.Context         // what the contexts of tasks are children of
	stop  context.CancelCauseFunc // cancels ctx

	// scopeTold: the scope has been told of undone. It is set with the scope locked.
	scopeTold atomicBool

	turn    turn          // in the line for a goroutine
	unasked turn          // in the line for a submission
	began   time.Duration // when the task that runs began, if observed; only for the drain

	mu mutex // guards what follows; no code of users is called with it held
	q  queue

	// active: w is in the line for a goroutine, or has one. The goroutine that sets
	// it puts w in the line. It is cleared only where the queue is seen to be empty,
	// or is made empty: so what is queued while it is true is seen.
	active bool
	// hasGoroutine: a goroutine of the pool is at w. It implies active.
	hasGoroutine bool
	// refusing: nothing more is accepted. It is never cleared.
	refusing bool
	// closed: refusing, and no task is queued or runs. It is set once.
	closed bool
	// undone is why tasks that should have run never will, nil if there are none.
	// It is set once, before closed.
	undone error
	// cutShort is undone, if Drain is told of it.
	cutShort error
	// over: the scope and all waits were told of the end, and nothing is registered
	// anywhere. It is set once, after closed.
	over bool

	unwatch   func() bool         // ends the look at outer
	atEnd     bridge.Registration // in scope
	timer     *time.Timer
	armed     bool          // timer runs
	due       time.Duration // when it fires
	idle      chan struct{} // closed when w is idle next; nil if nobody waits
	ended     chan struct{} // closed when over is set; nil if nobody waits
	blocked   []*blockedCall
	ticks     uint64
	activated uint64
}

type workerKey struct{ w *ExecutorWorker }

// InWorker reports whether ctx is that of a task of w, or derived from one.
func InWorker(ctx context.Context, w *ExecutorWorker) bool {
	return ctx.Value(workerKey{w}) != nil
}

// NewWorker returns a worker that has nothing to do. The contexts of its tasks
// are children of ctx. From the moment ctx is done no task of the worker starts
// and none is accepted; what is pending is cancelled with the cause.
//
// If ctx carries a scope of package async the worker ends with it. When its
// turn comes and ctx is not done, the worker is drained before Scope returns.
// If ctx is done it has been closed, and Scope waits for the task that runs.
// Tasks that were queued or due and never ran, because ctx or the pool has
// ended, because the pool refused them while the worker was drained, or because
// of [CloseOnPanic], are an error of the scope; what Close and CancelPending
// drop is none. The turns of workers and exit hooks come in the reverse of the
// order in which they were made: make the last stage of a pipeline first. A
// scope with async.DetachAfter does not wait for ever, and names the workers
// whose tasks still run.
//
// NewWorker does not block. A worker of a closed scheduler or an ended scope is
// closed from the first. A nil ctx panics.
func (s *Scheduler) NewWorker(ctx context.Context, opts ...WorkerOption) *ExecutorWorker {
	if ctx == nil {
		panic("scheduler: NewWorker with a nil context: pass context.Background()")
	}
	w := &ExecutorWorker{s: s, o: s.o.workerOptions}
	for _, o := range opts {
		o.applyWorker(&w.o)
	}
	if w.o.name == "" {
		w.o.name = "worker"
	}
	w.turn.w, w.unasked.w = w, w
	w.ctx, w.stop = context.WithCancelCause(context.WithValue(ctx, workerKey{w}, true))
	w.scope = bridge.ScopeOf(ctx)
	if ctx.Done() != nil {
		w.outer = ctx
	}
	if !s.add(w) {
		_ = w.Close()
		return w
	}
	w.endWithScope()
	w.watch()
	return w
}

// watch has w closed when the ctx that it was made with is done.
func (w *ExecutorWorker) watch() {
	if w.outer == nil {
		return
	}
	unwatch := context.AfterFunc(w.outer, w.noticeEnd)
	w.mu.Lock()
	w.unwatch = unwatch
	closed := w.closed
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
	switch pool := w.s.o.pool; {
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
	return w.refusing
}

// Len returns how many tasks have not started, delayed and periodic ones
// included. It does not block.
func (w *ExecutorWorker) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.q.pending()
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
	return waitFor(idle, ctx)
}

// waitFor blocks until over is closed, or returns the cause of ctx when that is done
// before. If both have happened when it looks, over wins.
func waitFor(over <-chan struct{}, ctx context.Context) error {
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-over:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// isIdleLocked reports that nothing is queued and no goroutine is at w, whether
// or not one is still to come for it.
func (w *ExecutorWorker) isIdleLocked() bool { return w.q.length == 0 && !w.hasGoroutine }

// noteIdleLocked wakes all calls that wait for w to be idle, if it is. It reports
// true, once, if w has come to its end with that: cleanUp is to be called.
func (w *ExecutorWorker) noteIdleLocked() (ended bool) {
	if !w.isIdleLocked() {
		return false
	}
	if w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	ended = w.refusing && !w.closed
	w.closed = w.closed || ended
	return ended
}
