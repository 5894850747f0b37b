package scheduler

import (
	"context"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is how futures of package async run on workers.

// Submit schedules f and returns the future of its result. f is a task in the
// sense of package async, started with the worker's context: what it starts has
// ended when the future settles, and before the worker's next task starts. A
// panic of f is the future's [*async.PanicError], Goexit is async.ErrGoexit, and
// the worker goes on. Cancelling the future, or the expiry of its owner's
// Await, takes f out of the queue; CancelPending gives it [ErrCancelled], a
// worker that is or becomes closed [ErrClosed] or the cause of its ctx. A pool
// that refuses or has ended, or a full queue, gives it a [*RejectedError]: that
// is a failure of the future, and of its scope if nobody awaits it.
//
// A task of w must not await the future: it waits for itself.
//
// Submit blocks only as [Capacity] says. Under an async.Limit of the worker's
// scope f joins the queue when it has its slot. A nil f panics.
func Submit[T any](w *ExecutorWorker, f func(ctx context.Context) (T, error)) *async.Future[T] {
	return submit(w.ctx, w, f)
}

// Call is Submit and Await in one, for a caller that has nothing else to do: f
// is started with ctx, whose end takes it out of the queue or cancels it. It
// blocks until f has ended or ctx is done. With the ctx of a task of w, where
// it could never return, it returns [ErrSelfWait].
func Call[T any](ctx context.Context, w *ExecutorWorker, f func(ctx context.Context) (T, error)) (T, error) {
	if InWorker(ctx, w) {
		return *new(T), ErrSelfWait
	}
	future := submit(context.WithValue(ctx, workerKey{w}, true), w, f)
	stop := context.AfterFunc(w.ctx, func() { future.Cancel(context.Cause(w.ctx)) })
	defer stop()
	return future.Await(ctx, 0)
}

func submit[T any](ctx context.Context, w *ExecutorWorker, f func(ctx context.Context) (T, error)) *async.Future[T] {
	if f == nil {
		panic("scheduler: Submit or Call with a nil function")
	}
	x := &submission{w: w}
	future := async.Execute(ctx, f, async.On(x))
	x.belongsTo(future)
	return future
}

// A submission is the executor of one future: its place in the queue of w.
type submission struct {
	w *ExecutorWorker

	mu     mutex // guards what follows
	n      *node
	future canceller // nil until Execute has returned
	lost   reason    // why the task will not run; zero if it may

	withdrawn bool // the future was cancelled while it was queued
}

// A canceller is an *async.Future of any type.
type canceller interface{ Cancel(cause error) bool }

// Execute queues run and blocks while there is no room.
func (x *submission) Execute(run func()) error { return x.queue(run, true) }

// TryExecute queues run, unless that would block or fail.
func (x *submission) TryExecute(run func()) bool { return x.queue(run, false) == nil }

func (x *submission) queue(run func(), wait bool) error {
	w := x.w
	n := &node{w: w, plain: run, noContext: true, future: x}
	x.mu.Lock()
	late := x.withdrawn
	x.n = n
	x.mu.Unlock()
	switch {
	case late:
		return ErrCancelled
	case w.isCancelled():
		return w.whyClosed()
	}
	w.mu.Lock()
	switch {
	case n.status() != Pending: // withdrawn a moment ago
		w.mu.Unlock()
		return ErrCancelled
	case w.refusing:
		w.mu.Unlock()
		return w.whyClosed()
	case !wait && w.o.full == Block && w.isFullLocked():
		w.mu.Unlock()
		return ErrFull
	}
	return w.admit(n)
}

// whyClosed returns why w accepts nothing more. The reason of w comes first: it may
// have been closed before its ctx was done.
func (w *ExecutorWorker) whyClosed() error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	if w.isCancelled() {
		return context.Cause(w.outer)
	}
	return ErrClosed // it is draining
}

// Withdraw is called by package async when the future was cancelled while it
// was queued.
func (x *submission) Withdraw(bridge.Token) {
	x.mu.Lock()
	n := x.n
	x.n, x.withdrawn = nil, true
	x.mu.Unlock()
	if n != nil && !x.w.withdraw(n) {
		x.w.cancel(n, ErrCancelled)
	}
}

// dropped is called by the worker when the task will not run.
func (x *submission) dropped(why reason) {
	x.mu.Lock()
	future := x.future
	if x.withdrawn {
		future = nil // it knows
	} else {
		x.lost = why
	}
	x.mu.Unlock()
	if future != nil {
		why.settle(future)
	}
}

// belongsTo says whose task it is. That of a future that was made just now may
// have been dropped before: then dropped has left word.
func (x *submission) belongsTo(future canceller) {
	x.mu.Lock()
	x.future = future
	why := x.lost
	x.mu.Unlock()
	if why.cause != nil {
		why.settle(future)
	}
}

// settle settles a future whose task will not run. A rejection is a failure: if
// nobody is given it, it is the scope's. A cancellation somebody has asked for.
func (why reason) settle(future canceller) {
	if why.outcome == Rejected {
		bridge.Reject(future, why.cause)
	} else {
		future.Cancel(why.cause)
	}
}
