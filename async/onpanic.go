package async

import "github.com/ambit-go/ambit/async/internal/tally"

// This file asks a scope about the panics of its Go tasks.

// OnPanic asks f about the panic of every [Go] task of the scope, before anything
// is cancelled because of it. What f returns decides:
//
//   - nil: the scope carries on, as a server does when one handler panics.
//   - the same p: the scope is cancelled and raises it, as without the option.
//   - another error, also one that wraps p: the scope fails with that error. It is
//     returned by [Scope] as the error of a task is, and nothing is raised.
//
// What the task has started is cancelled and joined in any case. If p is not raised,
// what went wrong in there counts as if the task had not panicked: errors are
// the task's, and another panic is asked about when the task ends. Its exit hooks
// ([OnExit]) are told of p: it has not ended well.
//
// f is called on the goroutine that has panicked, after its deferred functions, with
// no lock held; for the panic of something that the task has started, when the task
// has ended, on a goroutine of its own. Several goroutines may call f at once. If f
// itself panics or calls runtime.Goexit, that is an error of the scope, and p is
// raised.
//
// Observers are told of every panic, whatever f says. f is not asked about
// panics of the body, of futures ([Execute], [Start] and the like) and of hooks; for
// errors there is [OnFailure]. A nil f panics.
//
// A handler of net/http that panics does not end its server: that is the model.
func OnPanic(f func(p *PanicError) error) ScopeOption {
	if f == nil {
		panic("async: OnPanic(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { s.onPanic = f })
}

// asksOnPanic reports whether s asks somebody about panics of t.
func (s *scope) asksOnPanic(t *task) bool {
	return t.kind == kindGo && s.opts != nil && s.opts.onPanic != nil
}

// askAboutOwn asks OnPanic about p, with which the handler of g has just panicked,
// and does what it says. t is the task of g, or of its last run. It is on the
// goroutine of t, so it may not come back: the answer is acted on in any case.
func (g *goTask) askAboutOwn(t *task, p *PanicError) {
	h := t.scope() // also if there was none: nothing can be started without being cancelled
	h.returned()
	t.retire() // OnPanic is no part of the handler, and may wait for what queues
	answer, exit := error(p), byGoexit
	var bad error
	defer func() {
		if caught(t, recover(), &exit, &bad); exit == byGoexit {
			bad = ErrGoexit
		}
		if bad != nil && bad != error(p) { // f may raise p itself
			g.t.owner.recordHookError(bad)
		}
		g.early = p
		if tally.Same(answer, p) {
			_ = h.firstPanic(p)
			g.t.owner.record(&tally.Fact{Class: tally.Panic, Err: p})
		} else {
			g.pardon(t, p, answer)
		}
	}()
	answer = g.t.owner.opts.onPanic(p)
	exit = byReturn
}

// pardon has p, with which the handler of t has panicked, not be raised. answer is
// what the owner fails with instead, nil for nothing. What the handler has
// started is cancelled because of p, and does not count if it only repeats that.
func (g *goTask) pardon(t *task, p *PanicError, answer error) {
	t.exit = byPardon
	if answer != nil {
		g.t.owner.recordOutcome(&verdict{err: answer}, false)
	}
	if h := t.scope(); h.cancel(canceled(p)) {
		h.excuse(p)
	}
	g.t.owner.tellPanic(p)
}

// pardoned returns the panic that t has ended with if that is not raised; else nil.
// Its handler must have come to its end.
func (t *task) pardoned() *PanicError {
	if t.exit != byPardon {
		return nil
	}
	return t.whole().self.(*goTask).early
}

// askOnPanic asks OnPanic about the outcome v of a task that has ended, with a
// panic of something that it has started. It writes to f what is left to be told,
// and reports false if that is nothing.
func (s *scope) askOnPanic(v *verdict, f *tally.Fact) bool {
	p := v.panic // if ask held v, the verdict of every Go task would be on the heap
	answer := error(p)
	ask := func() { answer = s.opts.onPanic(p) }
	if bad := guard("OnPanic", ask); bad != nil && bad != error(v.panic) {
		s.recordHookError(bad)
	}
	switch {
	case tally.Same(answer, v.panic):
	case answer != nil:
		*f = tally.Fact{Err: answer}
	case v.goexit: // it was not asked about that
		*f = tally.Fact{Class: tally.Goexit, Err: ErrGoexit}
	default:
		return false
	}
	return true
}
