package async

import (
	"context"
	_ "sync"        // the compiler inlines methods of what tree names Mutex
	_ "sync/atomic" // and AtomicBool only where these are imported

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A Future is the handle to the result of a task. It settles once, when the
// handler has returned and everything started in it has ended. Any number of
// goroutines may use a Future, any number of times; every wait is given the
// same outcome. The work of the task happens before a wait for it returns.
//
// The error of a task belongs to those who await the future. If nobody was given
// it by the time the scope ends, it becomes the scope's. A Future is made by
// [Execute], [Start] and the like; methods of a nil or zero Future panic.
type Future[T any] struct {
	f       tree.Future
	value   T // written before f is settled, read after
	handler func(context.Context) (T, error)
}

// Done returns a channel that is closed when f settles. Watching it claims no
// error; see [Future.Result].
func (f *Future[T]) Done() <-chan struct{} {
	return f.made("Done").DoneChannel()
}

// Result returns the outcome if f has settled; ok is false if it has not.
func (f *Future[T]) Result() (value T, err error, ok bool) {
	if !f.made("Result").Settled() {
		return value, nil, false
	}
	value, err = f.outcome()
	return value, err, true
}

// outcome returns the outcome of a settled future, and notes that it was given.
func (f *Future[T]) outcome() (T, error) {
	if _, kept := f.f.Err.(*tree.Unclaimed); kept {
		return f.claim()
	}
	return f.value, f.f.Err
}

// claim is outcome for one that was kept until somebody is given it.
func (f *Future[T]) claim() (T, error) {
	kept, err := f.f.Give()
	if kept != nil {
		return kept.(*held[T]).value, err
	}
	return f.value, err
}

// Cancel aborts the task with cause (nil: [context.Canceled]) and does not wait: its
// context is cancelled, then its abort hook is called.
//
//	first := f.Cancel(errTooLate)
//
// # Details
//
// A task that is still queued settles at once with cause and never runs. Cancel
// reports whether it was the first to cancel the task. The caller has been told: later
// errors of the task fail no scope, unless it panics or calls Goexit, and of a task
// that has settled neither does the error it settled with.
func (f *Future[T]) Cancel(cause error) bool {
	if cause == nil {
		cause = context.Canceled
	}
	if !f.made("Cancel").TellHolder(tree.Canceled(cause).AsError()) {
		f.f.Renounce(cause)
		return false
	}
	if f.f.Task.Stopped() != nil {
		return false // perhaps by its context, of which nobody has told us yet
	}
	return f.f.Task.Scope().Cancel(tree.Canceled(cause))
}

// IsRunning reports whether the task is neither queued nor settled.
func (f *Future[T]) IsRunning() bool {
	st := f.made("IsRunning").Task.State.Load()
	return st == tree.StateRunning || st == tree.StateJoining
}

// State returns where the task stands.
func (f *Future[T]) State() State { return State(f.made("State").Task.PublicState()) }

// A job is a Future as the engine sees it: what runs, and settles. So the methods that are not
// for users are no methods of Future.
type job[T any] Future[T]

// public returns what users are given for f.
func (f *job[T]) public() *Future[T] { return (*Future[T])(f) }

// Completed returns a future that has settled with value and err.
//
//	return async.Completed(cached, nil)
//
// # Details
//
// The future belongs to no scope, and only those who await it are told of err.
func Completed[T any](value T, err error) *Future[T] {
	f := &job[T]{value: value}
	f.init(tree.KindFuture, nil)
	f.f.SettleUnowned(err)
	return f.public()
}

func (f *job[T]) init(k tree.Kind, handler func(context.Context) (T, error)) {
	f.handler = handler
	f.f.Task.Self, f.f.Task.Kind = f, k
}

func (f *job[T]) Func() any            { return f.handler }
func (f *job[T]) Future() *tree.Future { return &f.f }

// Run is the body of the task's goroutine.
func (f *job[T]) Run() {
	defer f.finish() // also on Goexit
	f.call()
	tree.NilPanic(&f.f.Task.Exit)
}

// call calls the handler. A panic is recovered here; Goexit is not, and goes on to
// finish, which Run has deferred.
func (f *job[T]) call() {
	t := &f.f.Task
	defer func() { tree.Caught(t, recover(), &t.Exit, &f.f.Err) }()
	t.Enter()
	f.value, f.f.Err = f.handler(t)
	t.Exit = tree.ByReturn
}

// finish joins what the handler has started, then settles.
func (f *job[T]) finish() {
	t := &f.f.Task
	defer t.Rescue()
	succeeded := t.Exit == tree.ByReturn && f.f.Err == nil
	var v tree.Verdict
	stop := t.End(f.f.Err, &v)
	if !succeeded && v.Err == nil { // it only repeated that a leader has ended
		f.f.Err = nil
	}
	leads := v.Err == nil && t.Leads()
	if t.More != nil {
		tree.TellEnd(t, &v, stop)
		if succeeded {
			f.offer(&v)
		}
	}
	f.f.Settle(&v, leads)
}

func (f *job[T]) RunOnce(t *tree.Task) (err error) {
	f.value, err = f.handler(t)
	return err
}

// Drop is called when a run has failed: its value is nobody's.
func (f *job[T]) Drop(valid bool) {
	value := f.value
	f.value = *new(T)
	if valid {
		f.Discard(value)
	}
}

func (f *job[T]) EndRuns(exit tree.ExitKind, err error, valid bool) {
	if valid && err != nil && f.f.Task.More.Discard != nil {
		f.Drop(true) // it came beside an error of what the handler has started
	}
	f.f.Task.Exit, f.f.Err = exit, err
	f.finish()
}

// Unrun settles a task that never ran.
func (f *job[T]) Unrun(v *tree.Verdict) { f.f.Settle(v, false) }

// offer decides what becomes of the value of a future with a discard hook, as
// it is about to settle. It is discarded if a waiter was told something else
// before, which the future settles with then, and if what the handler has
// started has failed, because a waiter is given that error alone.
func (f *job[T]) offer(v *tree.Verdict) {
	t := &f.f.Task
	if t.More.Discard == nil {
		return
	}
	why := v.Err
	if why == nil {
		why = f.f.PromiseValue()
	}
	value := held[T]{f.value, t.More.Discard.(func(T)), t.Name()}
	f.value = *new(T)
	if why == nil {
		v.Value = &value // kept there, see Future.unclaimed in tree/settle.go
		return
	}
	v.Err = why
	t.Retire() // the hook is no part of the handler
	if err := value.Discard(); err != nil {
		t.Owner.RecordHookError(err)
	}
}

// Discard calls the discard hook, if there is one, with a value that came too
// late. A failure of the hook is the scope's.
func (f *job[T]) Discard(value T) {
	t := &f.f.Task
	if t.More == nil || t.More.Discard == nil {
		return
	}
	late := held[T]{value, t.More.Discard.(func(T)), t.Name()}
	if err := late.Discard(); err != nil {
		t.Owner.RecordHookError(err)
	}
}

// GivesNothing reports that there is nothing in a value of f, as in those of Start.
func (f *job[T]) GivesNothing() bool { return isNothing[T]() }

func isNothing[T any]() bool {
	_, nothing := any(*new(T)).(struct{})
	return nothing
}

// made returns what f is without its type. It panics if there is none, because
// op was called on a nil Future or on one that nothing has made.
func (f *Future[T]) made(op string) *tree.Future {
	if f == nil || f.f.Task.Self == nil {
		panicNotMade(op, f == nil)
	}
	return &f.f
}

func panicNotMade(op string, isNil bool) {
	if isNil {
		panic("async: " + op + " of a nil Future: it is Execute, Start and the like that return one")
	}
	panic("async: " + op + " of a zero Future: it has no task; use what Execute, Start and the like return")
}

// held is a value that is to be discarded if nobody is given it. It is not kept
// in the future: for a root task it must outlive that.
type held[T any] struct {
	value T
	hook  func(T)
	task  string
}

// Discard calls the hook on a goroutine of its own and waits for it.
func (h *held[T]) Discard() error {
	return tree.Guard("discard hook of "+h.task, func() { h.hook(h.value) })
}

func init() { bridge.Reject, bridge.Settled = rejectAccepted, settled }

// futureIn returns the future of the tree that is in an *async.Future of any type.
func futureIn(future any, op string) *tree.Future {
	return future.(interface{ made(op string) *tree.Future }).made(op)
}

func settled(future any) bool { return futureIn(future, "Settled").Settled() }

// rejectAccepted settles a future whose task an executor has accepted, and will never run.
func rejectAccepted(future any, err error) {
	t := &futureIn(future, "Reject").Task
	if d := t.More.Delivery; d != nil && d.Decide() {
		tree.Reject(t, err)
	}
}
