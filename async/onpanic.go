package async

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file asks a scope about the panics of its Go tasks.

// OnPanic asks f about the panic of every [Go] task of the scope, when the task and
// what it has started have ended. What f returns decides:
//
//   - nil: the scope carries on, as a server does when one handler panics.
//   - the same p: the scope is cancelled and raises it, as without the option.
//   - another error, also one that wraps p: the scope fails with that error. It is
//     returned by [Scope] as the error of a task is, and nothing is raised.
//
// Until f has answered nothing around the task is cancelled; what the task has started
// is at once. If f returns nil, what else went wrong in the task counts as if the task
// had ended with it: f is asked about another panic, [OnFailure] about errors. Its exit
// hooks ([OnExit]) are told of p: it has not ended well.
//
// f is called on a goroutine of its own, with no lock held. Several goroutines may call
// f at once. If f itself panics or calls runtime.Goexit, that is an error of the scope,
// and p is raised.
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

// askOnPanic asks OnPanic about the outcome v of the task t, which has ended with a
// panic. It writes to f what is left to be told, and reports false if that is nothing.
// The errors of t beside a panic that does not count are told as if t had ended with
// them.
func (s *scope) askOnPanic(t *task, v *verdict, f *tally.Fact) bool {
	t.retire()   // OnPanic is no part of the handler, and may wait for what queues
	p := v.panic // not v itself: the verdict of every Go task would be on the heap
	for p != nil {
		answer := error(p)
		if bad := guard("OnPanic", func() { answer = s.opts.onPanic(p) }); bad != nil && !p.Is(bad) {
			s.recordHookError(bad)
		}
		switch {
		case tally.Same(answer, p):
			*f = tally.Fact{Class: tally.Panic, Err: p, Errs: p.Also, Dropped: p.dropped}
			return true
		}
		p = p.withoutCount()
		if answer != nil {
			*f = tally.Fact{Err: answer, Errs: append([]error{answer}, p.Also...), Dropped: p.dropped}
			return true
		}
		rest := joined(t, p.Also, p.dropped)
		if p = nextPanic(p); p != nil {
			continue
		}
		*f = tally.Fact{Err: rest}
		if v.goexit { // OnFailure is not asked about that
			f.Class, f.Err = tally.Goexit, ErrGoexit
			return true
		}
		return rest != nil && (s.opts.onFailure == nil || s.askOnFailure(t, f))
	}
	return false
}

// withoutCount returns e without the error that says how often a task with [Restart] has
// failed: nothing more has gone wrong.
func (e *PanicError) withoutCount() *PanicError {
	c := *e
	c.Also = slices.DeleteFunc(slices.Clone(e.Also), func(err error) bool {
		count, ok := err.(*RestartError)
		return ok && count != nil && count.Err == nil && count.why == nil
	})
	return &c
}

// nextPanic returns the first panic that came beside p, with all else that did; nil if
// there is none.
func nextPanic(p *PanicError) *PanicError {
	for i, err := range p.Also {
		if next, ok := err.(*PanicError); ok && next.isOurs() {
			return next.with(slices.Concat(p.Also[:i], p.Also[i+1:]), p.dropped)
		}
	}
	return nil
}
