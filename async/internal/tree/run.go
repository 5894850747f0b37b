package tree

import (
	"errors"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file runs handlers that have nobody who waits for a result: Go tasks, detached
// tasks and hooks.

// Func returns the handler, for its name.
func (g *GoTask) Func() any { return g.Handler }

// Future returns nil: nobody can await a Go task.
func (g *GoTask) Future() *Future { return nil }

// Unrun ends a task that never ran.
func (g *GoTask) Unrun(v *Verdict) {
	t := &g.Task
	if t.Kind == KindDetached {
		t.Owner.Home.detachedEnded(v)
	} else {
		t.Owner.ChildFailed(t, v)
	}
	t.Move(StateDone)
	t.Leave()
}

// Run is the body of the task's goroutine.
func (g *GoTask) Run() {
	var err error
	defer func() { g.finish(err) }() // also on Goexit
	g.call(&err)
	NilPanic(&g.Task.Exit)
	if g.Task.Exit == ByPanic {
		g.panicked(Codec.PanicIn(err))
	}
}

// GivesNothing reports that there is no value.
func (g *GoTask) GivesNothing() bool { return true }

// RunOnce calls the handler for one run of a task with Restart.
func (g *GoTask) RunOnce(t *Task) error { return g.Handler(t) }

// Drop does nothing: a run has no value to discard.
func (g *GoTask) Drop(bool) {}

// EndRuns ends a task with Restart by the outcome of its last run.
func (g *GoTask) EndRuns(exit ExitKind, err error, _ bool) {
	g.Task.Exit = exit
	g.Task.Retire() // who is asked about the failure is no part of the handler
	g.finish(err)
}

// panicked does steps 4 and 5 of failure.go for a panic of the handler, before step 1 is over: the
// owner is cancelled at once, though the tasks that the handler has started may take long to end.
// Where OnPanic is to be asked, the steps come in their order.
func (g *GoTask) panicked(p *Panic) {
	if g.Task.Kind != KindGo || asksOnPanic(g.Task.Owner, &g.Task) {
		return
	}
	if h := g.Task.Inner.Load(); h != nil {
		h.returned() // no abort hook for its own panic
	}
	g.Task.early = true
	g.Task.Owner.Record(&tally.Fact{Class: tally.Panic, Err: p.AsError()})
}

func (g *GoTask) call(err *error) {
	defer func() { Caught(&g.Task, recover(), &g.Task.Exit, err) }()
	g.Task.Enter()
	*err = g.Handler(&g.Task)
	g.Task.Exit = ByReturn
}

// finish joins what the handler, which has returned err, has started, and does what follows from
// how g has ended: the rest of step 1 of failure.go, and steps 2 to 7.
func (g *GoTask) finish(err error) {
	t := &g.Task
	defer t.Rescue()
	var v Verdict
	stop := t.End(err, &v)
	g.tell(err, &v)
	TellEnd(t, &v, stop)
	g.leave(&v)
}

// tell has steps 2 to 5 of failure.go done if g has failed: its handler has returned err, and
// v says how g has ended.
func (g *GoTask) tell(err error, v *Verdict) {
	t := &g.Task
	switch {
	case t.Kind == KindHook:
		hookEnded(t, v)
	case t.Kind == KindDetached:
		t.Owner.Home.detachedEnded(v)
	case g.Task.early && v.Panic != nil:
		g.tellBeside(Codec.PanicIn(err), v.Panic)
	case v.Err != nil:
		t.Owner.ChildFailed(t, v)
	case t.Leads():
		t.lead()
	}
}

// tellBeside tells the owner, which was told of thrown when the handler panicked, what
// else went wrong in g, which has ended with p.
func (g *GoTask) tellBeside(thrown, p *Panic) {
	if p.Raised {
		return
	}
	errs := p.Also
	if p.identity != thrown.identity {
		errs = append([]error{p.AsError()}, errs...)
	}
	if len(errs)+p.Dropped > 0 {
		g.Task.Owner.Record(&tally.Fact{Err: p.AsError(), Errs: errs, Dropped: p.Dropped, GoesOn: true})
	}
}

// leave is step 7 of failure.go: it ends the membership of g, which has ended with v.
func (g *GoTask) leave(v *Verdict) {
	t := &g.Task
	t.Move(StateDone)
	t.Leave()
	if t.Kind == KindDetached && v.Panic != nil {
		panic(v.Panic.Raise()) // nobody to re-raise it: the process ends, as with a bare goroutine
	}
}

// hookEnded keeps what went wrong in the hook t. An exit hook that returned too
// late is told of even if it says that all went well.
func hookEnded(t *Task, v *Verdict) {
	err := v.Err
	if h, exit := t.Self.(*exitRun); exit && h.late != nil {
		switch {
		case err == nil:
			err = h.late
		case v.Panic != nil || v.Goexit: // which tell nothing of it
			err = errors.Join(h.late, err)
		}
	}
	if err != nil {
		if _, exit := t.Self.(*exitRun); !exit { // an exit hook of a scope says so itself
			err = &namedFailure{err, t.Naming(), t.Owner}
		}
		t.Owner.RecordHookError(err)
	}
	countOut(t)
}

// detachedEnded keeps the error of a detached task for Shutdown.
func (r *Root) detachedEnded(v *Verdict) {
	if v.Err != nil {
		r.Scope.Record(&tally.Fact{Err: v.Err, GoesOn: true})
	}
}
