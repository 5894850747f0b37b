package scheduler

import (
	"context"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is how futures of package async run on workers.

// Submit schedules f and returns the future of its result.
//
//	future := scheduler.Submit(w, func(ctx context.Context) (int, error) { return balance, nil })
//	sum, err := future.Await(ctx, time.Second)
//
// # Details
//
// f is a task in the sense of package async, started with the worker's context: what it
// starts has ended when the future settles, and before the worker's next task starts. A
// panic of f is the future's [*async.PanicError], Goexit is async.ErrGoexit, and the
// worker goes on. Cancelling the future, or the expiry of its owner's Await, takes f out
// of the queue; CancelPending gives it [ErrCancelled], a worker that is or becomes closed
// [ErrClosed] or the cause of its ctx. A pool that refuses or has ended, or a full queue,
// gives it a [*RejectedError]: that is a failure of the future, and of its scope if
// nobody awaits it.
//
// A task of w that awaits the future would wait for itself: with the ctx of that task
// Await and Wait return [ErrSelfWait], and async.ErrAwaitCycle if the way back to w leads
// through other workers, whose names are in the text. The future is left alone by that.
//
// Submit blocks only as [Capacity] says. Under an async.Limit of the worker's scope f
// joins the queue when it has its slot. A nil f panics.
func Submit[T any](w *ExecutorWorker, f func(ctx context.Context) (T, error)) *async.Future[T] {
	return submit(w.ctx, w, f)
}

// Call is Submit and Await in one, for a caller that has nothing else to do.
//
//	sum, err := scheduler.Call(ctx, w, func(ctx context.Context) (int, error) { return balance, nil })
//
// # Details
//
// f is started with ctx, whose end takes it out of the queue or cancels it. Call blocks
// until f has ended or ctx is done. With the ctx of a task of w, where it could never
// return, it returns [ErrSelfWait]; with that of a task for which a task of w waits,
// perhaps through other workers, async.ErrAwaitCycle with the names of these.
func Call[T any](ctx context.Context, w *ExecutorWorker, f func(ctx context.Context) (T, error)) (T, error) {
	if _, self := w.vertex.runsAround(ctx); self {
		return *new(T), ErrSelfWait
	}
	future := submit(ctx, w, f)
	stop := context.AfterFunc(w.ctx, func() { future.Cancel(context.Cause(w.ctx)) })
	defer stop()
	value, err := future.Await(ctx, 0)
	if err != nil {
		future.Cancel(err) // of a wait that was refused, which has left the task alone
	}
	return value, err
}

func submit[T any](ctx context.Context, w *ExecutorWorker, f func(ctx context.Context) (T, error)) *async.Future[T] {
	if f == nil {
		panic("scheduler: Submit or Call with a nil function")
	}
	x := &submission{Context: ctx, w: w}
	future := async.Execute(x, f, async.On(x))
	x.belongsTo(future)
	return future
}

// A submission is the executor of one future: its place in the queue of w. It is also what
// the context of the task is a child of, and shows whose task it is.
type submission struct {
	context.Context
	w *ExecutorWorker
	ticket
}

// Execute queues run and blocks while there is no room.
func (x *submission) Execute(run func()) error { return x.queue(run, true) }

// TryExecute queues run, unless that would block or fail.
func (x *submission) TryExecute(run func()) bool { return x.queue(run, false) == nil }

func (x *submission) queue(run func(), wait bool) error {
	w := x.w
	n := &node{q: &w.q, plain: run, noContext: true, future: &x.ticket}
	switch {
	case !x.issue(n):
		return ErrCancelled
	case w.isCancelled():
		return w.whyClosed()
	}
	w.mu.Lock()
	switch {
	case n.status() != Pending: // withdrawn a moment ago
		w.mu.Unlock()
		return ErrCancelled
	case w.life.refusing:
		w.mu.Unlock()
		return w.whyClosed()
	case !wait && w.room.full == Block && w.room.most > 0 && w.room.isFull(w.q.pending()):
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
	if n := x.takeBack(); n != nil && !x.w.withdraw(n) {
		x.w.cancel(n, ErrCancelled)
	}
}

// Value does the same for the task of a future. The ctx that Call is given may belong to
// another worker's task: x is inside that.
func (x *submission) Value(key any) any {
	switch k := key.(type) {
	case runningKey:
		return x
	case workerKey:
		if k.w == x.w {
			return true
		}
	}
	return x.Context.Value(key)
}

func (x *submission) worker() *vertex        { return &x.w.vertex }
func (x *submission) outer() context.Context { return x.Context }
func (x *submission) runs() bool             { return x.state() == Running }

// Part returns the worker, for those who look: the future has a place in its queue.
func (x *submission) Part() part.Part { return (*member)(x.w) }

// Awaited is called by package async for each wait for the future.
func (x *submission) Awaited(ctx context.Context, _ bridge.Token) (over func(), err error) {
	return x.w.vertex.awaited(ctx, func() bool { return x.state() > Running })
}
