package async

import (
	"context"
)

// A Future is the handle to the result of a task. It settles once, when the
// handler has returned and everything started in it has ended. Any number of
// goroutines may use a Future, any number of times; every wait is given the
// same outcome. What the task did happens before a wait for it returns.
//
// The error of a task belongs to those who await the future. If nobody was given
// it by the time the scope ends, it becomes the scope's. A Future is made by
// [Execute], [Start] and the like; methods of a nil or zero Future panic.
type Future[T any] struct {
	f       future
	value   T // written before f is settled, read after
	handler func(context.Context) (T, error)
}

// Done returns a channel that is closed when f settles. Watching it claims no
// error; see [Future.Result].
func (f *Future[T]) Done() <-chan struct{} {
	return f.made("Done").doneChannel()
}

// Result returns the outcome if f has settled; ok is false if it has not.
func (f *Future[T]) Result() (value T, err error, ok bool) {
	if !f.made("Result").settled() {
		return value, nil, false
	}
	value, err = f.outcome()
	return value, err, true
}

// outcome returns the outcome of a settled future, and notes that it was given.
func (f *Future[T]) outcome() (T, error) {
	if _, kept := f.f.err.(*unclaimed); kept {
		return f.claim()
	}
	return f.value, f.f.err
}

// claim is outcome for one that was kept until somebody is given it.
func (f *Future[T]) claim() (T, error) {
	kept, err := f.f.give()
	if kept != nil {
		return kept.(*held[T]).value, err
	}
	return f.value, err
}

// Cancel aborts the task with cause (nil: [context.Canceled]): its context is
// cancelled, then its abort hook is called. It does not wait; a task that is
// still queued settles at once with cause and never runs. Cancel reports
// whether it was the first to cancel the task. The caller has been told: later
// errors of the task fail no scope, unless it panics or calls Goexit, and of a
// task that has settled neither does the error it settled with.
func (f *Future[T]) Cancel(cause error) bool {
	if cause == nil {
		cause = context.Canceled
	}
	if !f.made("Cancel").tellOwner(canceled(cause).asError()) {
		f.f.renounce(cause)
		return false
	}
	if f.f.t.stopped() != nil {
		return false // perhaps by its context, of which nobody has told us yet
	}
	return f.f.t.scope().cancel(canceled(cause))
}

// IsRunning reports whether the task is neither queued nor settled.
func (f *Future[T]) IsRunning() bool {
	st := f.made("IsRunning").t.state.Load()
	return st == stateRunning || st == stateJoining
}

// State returns where the task stands.
func (f *Future[T]) State() State { return State(f.made("State").t.public()) }

// A job is a Future as the engine sees it: what runs, and settles. So the methods that are not
// for users are no methods of Future.
type job[T any] Future[T]

// public returns what users are given for f.
func (f *job[T]) public() *Future[T] { return (*Future[T])(f) }

// Completed returns a future that has settled with value and err. It belongs
// to no scope, and only those who await it are told of err.
func Completed[T any](value T, err error) *Future[T] {
	f := &job[T]{value: value}
	f.init(kindFuture, nil)
	f.f.settleUnowned(err)
	return f.public()
}

func (f *job[T]) init(k kind, handler func(context.Context) (T, error)) {
	f.handler = handler
	f.f.t.self, f.f.t.kind = f, k
}

func (f *job[T]) fn() any         { return f.handler }
func (f *job[T]) future() *future { return &f.f }

// run is the body of the task's goroutine.
func (f *job[T]) run() {
	defer f.finish() // also on Goexit
	f.call()
	nilPanic(&f.f.t.exit)
}

// call calls the handler. A panic is recovered here; Goexit is not, and goes on to
// finish, which run has deferred.
func (f *job[T]) call() {
	t := &f.f.t
	defer func() { caught(t, recover(), &t.exit, &f.f.err) }()
	t.enter()
	f.value, f.f.err = f.handler(t)
	t.exit = byReturn
}

// finish joins what the handler has started, then settles.
func (f *job[T]) finish() {
	t := &f.f.t
	defer t.rescue()
	succeeded := t.exit == byReturn && f.f.err == nil
	var v verdict
	sg := t.end(f.f.err, &v)
	if !succeeded && v.err == nil { // it only repeated that a leader has ended
		f.f.err = nil
	}
	if t.more != nil {
		tellEnd(t, &v, sg)
		f.conclude(&v, succeeded)
	} else {
		f.f.settle(&v)
	}
}

// conclude settles f, which has more, and has ended with v. valid: the handler has
// returned a value and no error.
func (f *job[T]) conclude(v *verdict, valid bool) {
	leads := v.err == nil && f.f.t.leads()
	if valid {
		f.offer(v)
	}
	if leads {
		f.f.settleLeader(v)
	} else {
		f.f.settle(v)
	}
}

func (f *job[T]) runOnce(t *task) (err error) {
	f.value, err = f.handler(t)
	return err
}

// drop is called when a run has failed: its value is nobody's.
func (f *job[T]) drop(valid bool) {
	value := f.value
	f.value = *new(T)
	if valid {
		f.discard(value)
	}
}

func (f *job[T]) endRuns(exit exitKind, err error, valid bool) {
	if valid && err != nil && f.f.t.more.discard != nil {
		f.drop(true) // it came beside an error of what the handler has started
	}
	f.f.t.exit, f.f.err = exit, err
	f.finish()
}

// unrun settles a task that never ran.
func (f *job[T]) unrun(v *verdict) { f.f.settle(v) }

// offer decides what becomes of the value of a future with a discard hook, as
// it is about to settle. It is discarded if a waiter was told something else
// before, which the future settles with then, and if what the handler has
// started has failed, because a waiter is given that error alone.
func (f *job[T]) offer(v *verdict) {
	t := &f.f.t
	if t.more.discard == nil {
		return
	}
	why := v.err
	if why == nil {
		why = f.f.promiseValue()
	}
	value := held[T]{f.value, t.more.discard.(func(T)), t.name()}
	f.value = *new(T)
	if why == nil {
		v.value = &value // kept there, see unclaimed
		return
	}
	v.err = why
	t.retire() // the hook is no part of the handler
	if err := value.discard(); err != nil {
		t.owner.recordHookError(err)
	}
}

// discard calls the discard hook, if there is one, with a value that came too
// late. What goes wrong in it is the scope's.
func (f *job[T]) discard(value T) {
	t := &f.f.t
	if t.more == nil || t.more.discard == nil {
		return
	}
	late := held[T]{value, t.more.discard.(func(T)), t.name()}
	if err := late.discard(); err != nil {
		t.owner.recordHookError(err)
	}
}

// givesNothing reports that there is nothing in a value of f, as in those of Start.
func (f *job[T]) givesNothing() bool { return isNothing[T]() }

func isNothing[T any]() bool {
	_, nothing := any(*new(T)).(struct{})
	return nothing
}

// made returns what f is without its type. It panics if there is none, because
// op was called on a nil Future or on one that nothing has made.
func (f *Future[T]) made(op string) *future {
	if f == nil || f.f.t.self == nil {
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

// discard calls the hook on a goroutine of its own and waits for it.
func (h *held[T]) discard() error {
	return guard("discard hook of "+h.task, func() { h.hook(h.value) })
}
