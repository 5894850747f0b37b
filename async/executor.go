package async

import (
	"fmt"

	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is about running tasks elsewhere than on goroutines of their own.

// An Executor runs a task on some goroutine. Execute may block until it can,
// and may refuse with an error. If it has a method
//
//	TryExecute(task func()) bool
//
// too, which does not block, that is asked first. Any pool of goroutines is an
// Executor with an adapter of a few lines.
//
// The name and the shape are those of java.util.concurrent.
type Executor interface {
	Execute(task func()) error
}

// On runs a task on ex, or everything that is started in a scope: tasks,
// contenders, items, and what they start in turn. Bodies of scopes run where
// they are called, and hooks and watchdogs on goroutines of their own.
//
// Starting blocks as long as ex.Execute does, or until the task is cancelled;
// under a [Limit] it does not block, and a task is handed to ex when it has its
// slot. Until ex begins with it a task is queued: if it is cancelled by then it
// settles with the cause and does not run. A task that ex refuses settles with
// a [*RejectedError]. One that ex drops without a word stays queued until it is
// cancelled. Nothing runs twice, whatever ex does.
//
// A task that waits keeps its place in ex. Work that waits, in the only place
// of a pool, for work on the same pool can only time out: use a Limit, whose
// slots are lent, on a pool that is large enough.
func On(ex Executor) Option {
	if ex == nil {
		panic("async: On(nil): leave the option out instead")
	}
	return bothOption{
		func(t *taskOptions) { t.on = ex },
		func(s *scopeOptions) { s.on = ex },
	}
}

// A RejectedError is the outcome of a task that its executor refused to run. It
// is also the error of package scheduler, whose pool refused a worker: then
// Worker names that.
type RejectedError struct {
	Task   string // "" if what a worker had queued was rejected
	Worker string // "" if Task was not on a worker
	Err    error  // what the executor said, a *PanicError if it panicked, or the cause of the pool's end
}

// Error names the task or the worker and says why it was refused.
func (e *RejectedError) Error() string {
	if e.Worker != "" {
		return fmt.Sprintf("scheduler: %s: rejected by the pool: %v", e.Worker, e.Err)
	}
	return fmt.Sprintf("async: %s: rejected by its executor: %v", e.Task, e.Err)
}

// Unwrap returns what the executor said.
func (e *RejectedError) Unwrap() error { return e.Err }

// A place is a task's place in an executor. Who claims it first decides what
// becomes of the task: the executor that runs it, or refuses it, or whoever
// cancels it before.
type place struct {
	ex      Executor
	claimed atomicBool
}

// claim reports whether the caller is the first to decide.
func (p *place) claim() bool { return p != nil && p.claimed.CompareAndSwap(false, true) }

// begin is the goroutine of a task that a limiter has let go.
func (t *task) begin() {
	if exploring {
		defer starts("begin", t)()
	}
	if t.more.place == nil {
		// Who cancelled it may have been too late to find it in the queue.
		if t.more.slot.seq != 0 && t.stopped() != nil {
			t.skip()
		} else {
			t.main()
		}
	} else if t.wanted() && !t.more.place.try(t) {
		t.more.place.submit(t)
	}
}

// launch hands t to its executor and returns when that has taken or refused it,
// or t is cancelled.
func (t *task) launch() {
	if !t.wanted() || t.more.place.try(t) {
		return
	}
	// On another goroutine, because Execute may block for longer than we want
	// to wait, and may run t itself, which may call Goexit.
	w := newWaiter()
	go func() {
		if exploring {
			defer starts("submit", t)()
		}
		defer w.notify(gotSettled)
		t.more.place.submit(t)
	}()
	if h := t.scope(); h.listen(w) {
		w.park()
		h.unlisten(w)
	}
}

// wanted settles a task that has been cancelled and reports whether it has not.
// It makes the inner scope, by which a cancellation finds the task from now on.
func (t *task) wanted() bool {
	t.scope()
	if t.stopped() == nil {
		return true
	}
	if t.more.place.claim() {
		t.skip()
	}
	return false
}

// run is what the executor is given.
func (p *place) run(t *task) func() {
	return func() {
		if !p.claim() {
			return
		}
		if s := t.more.slot; s != nil {
			s.begun()
		}
		t.main()
	}
}

// try offers t to an executor that need not block, if it is one.
func (p *place) try(t *task) (taken bool) {
	ex, can := p.ex.(interface{ TryExecute(task func()) bool })
	if !can {
		return false
	}
	failed := p.ask(t, func() error { taken = ex.TryExecute(p.run(t)); return nil })
	return taken || failed
}

// submit gives t to the executor and blocks until that has taken or refused it.
func (p *place) submit(t *task) {
	p.ask(t, func() error { return p.ex.Execute(p.run(t)) })
}

// ask calls the executor. If that returns an error, panics or calls Goexit, t
// is rejected, unless it has begun to run all the same.
func (p *place) ask(t *task, call func() error) (failed bool) {
	exit := byGoexit
	var err error
	defer func() {
		v := recover()
		switch {
		case exit == byReturn:
		case v != nil:
			err = trap(t, v)
		default:
			err = ErrGoexit
		}
		failed = err != nil
		switch {
		case !failed:
		case p.claim():
			t.reject(err)
		case v != nil:
			panic(v) // not of t, which has begun or ended: it is not for us to hide
		}
	}()
	err = call()
	exit = byReturn
	return false // or what the deferred function says
}

// skip settles t, which was cancelled before it ran.
func (t *task) skip() {
	t.scope().seal()
	if p := t.more.place; p != nil {
		if x, ok := p.ex.(bridge.Withdrawer); ok {
			x.Withdraw(bridge.Token{})
		}
	}
	t.owner.noteSkipped()
	sg := t.stopped()
	t.self.unrun(&verdict{err: sg.told(), echo: true, cause: sg.cause})
}

// reject settles t, which its executor has refused.
func (t *task) reject(err error) {
	t.scope().seal()
	t.self.unrun(&verdict{err: &RejectedError{Task: t.name(), Err: err}})
}
