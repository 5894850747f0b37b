package async

import (
	"errors"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file runs handlers that have nobody who waits for a result: Go tasks, detached
// tasks and hooks.

func (g *goTask) fn() any { return g.handler }

func (g *goTask) future() *future { return nil }

// unrun ends a task that never ran.
func (g *goTask) unrun(v *verdict) {
	t := &g.t
	if t.kind == kindDetached {
		t.owner.home.detachedEnded(v)
	} else {
		t.owner.childFailed(t, v)
	}
	t.move(stateDone)
	t.leave()
}

// run is the body of the task's goroutine.
func (g *goTask) run() {
	var err error
	defer func() { g.finish(err) }() // also on Goexit
	g.call(&err)
	nilPanic(&g.t.exit)
	if g.t.exit == byPanic {
		g.panicked(&g.t, words.PanicIn(err))
	}
}

func (g *goTask) givesNothing() bool { return true }

func (g *goTask) runOnce(t *task) error { return g.handler(t) }

func (g *goTask) drop(bool) {}

func (g *goTask) endRuns(exit exitKind, err error, _ bool) {
	g.t.exit = exit
	g.t.retire() // who is asked about the failure is no part of the handler
	g.finish(err)
}

// panicked cancels the owner at once, though what the task has started may take
// long to end; not if OnPanic is to be asked first, when that has ended. t is the task
// of g, or of its last run.
func (g *goTask) panicked(t *task, p *panicRecord) {
	if g.t.kind != kindGo || asksOnPanic(g.t.owner, &g.t) {
		return
	}
	if h := t.inner.Load(); h != nil {
		h.returned() // no abort hook for its own panic
	}
	g.early = true
	g.t.owner.record(&tally.Fact{Class: tally.Panic, Err: p.asError()})
}

func (g *goTask) call(err *error) {
	defer func() { caught(&g.t, recover(), &g.t.exit, err) }()
	g.t.enter()
	*err = g.handler(&g.t)
	g.t.exit = byReturn
}

// finish joins what the handler has started and tells the owner how it ended.
func (g *goTask) finish(err error) {
	t := &g.t
	defer t.rescue()
	var v verdict
	sg := t.end(err, &v)
	g.tell(err, &v)
	tellEnd(t, &v, sg)
	g.leave(&v)
}

// tell tells whom it concerns how g has ended, whose handler has returned err.
func (g *goTask) tell(err error, v *verdict) {
	t := &g.t
	switch {
	case t.kind == kindHook:
		hookEnded(t, v)
	case t.kind == kindDetached:
		t.owner.home.detachedEnded(v)
	case g.early && v.panic != nil:
		g.tellBeside(words.PanicIn(err), v.panic)
	case v.err != nil:
		t.owner.childFailed(t, v)
	case t.leads():
		t.lead()
	}
}

// tellBeside tells the owner, which was told of own when the handler panicked, what
// else went wrong in g, which has ended with p.
func (g *goTask) tellBeside(own, p *panicRecord) {
	if p.raised {
		return
	}
	errs := p.also
	if p.of != own.of {
		errs = append([]error{p.asError()}, errs...)
	}
	if len(errs)+p.dropped > 0 {
		g.t.owner.record(&tally.Fact{Err: p.asError(), Errs: errs, Dropped: p.dropped, GoesOn: true})
	}
}

// leave ends the membership of g, which has ended with v.
func (g *goTask) leave(v *verdict) {
	t := &g.t
	t.move(stateDone)
	t.leave()
	if t.kind == kindDetached && v.panic != nil {
		panic(v.panic.raise()) // nobody to re-raise it: the process ends, as with a bare goroutine
	}
}

// hookEnded keeps what went wrong in the hook t. An exit hook that returned too
// late is told of even if it says that all went well.
func hookEnded(t *task, v *verdict) {
	err := v.err
	if h, exit := t.self.(*exitRun); exit && h.late != nil {
		switch {
		case err == nil:
			err = h.late
		case v.panic != nil || v.goexit: // which tell nothing of it
			err = errors.Join(h.late, err)
		}
	}
	if err != nil {
		if _, exit := t.self.(*exitRun); !exit { // an exit hook of a scope says so itself
			err = &failureOf{err, t.naming(), t.owner}
		}
		t.owner.recordHookError(err)
	}
	countOut(t)
}

// detachedEnded keeps the error of a detached task for Shutdown.
func (r *root) detachedEnded(v *verdict) {
	if v.err != nil {
		r.s.record(&tally.Fact{Err: v.err, GoesOn: true})
	}
}
