package async

import (
	"time"
)

// This file is the options of scopes that do not wait for ever in silence.

// OnStall calls f if tasks are left d after the scope should have come to its
// end. That is at most twice: d after body has returned, if the scope is not
// cancelled by then, and d after the scope was cancelled. The first is the
// commonest stall, a loop that nobody has told to stop.
//
// The error names the tasks that are left, with stacks. Its Cause is why they were
// told to stop, nil if they were not. f is called on a goroutine of its own, with
// no lock held, and the scope does not end before it has returned. It is not called
// once Scope has returned. A panic of f is an error of the scope. d <= 0 calls f
// at once, and a nil f panics.
//
// A look at the stacks stops the whole program for a moment; scopes that stall
// at about the same time share one.
func OnStall(d time.Duration, f func(*StragglerError)) ScopeOption {
	if f == nil {
		panic("async: OnStall(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) {
		p := impatienceOf(s)
		p.stall, p.call = d, func(l *leftovers) { f(stragglerError(l)) }
	})
}

// DetachAfter lets a scope return although tasks are left: d after its
// cancellation or, if it was not cancelled, after an exit hook has overrun its
// [HookTimeout], once body has returned, Scope returns a [*StragglerError] that
// names them, with stacks, beside what else went wrong. It is the way out when
// code that cannot be mended ignores its context. Workers of package scheduler
// and exit hooks that have overrun their [HookTimeout] are let go, too; an exit
// hook that is in time is waited for.
//
// What is left moves to the root of ctx and stays on record there under the name
// of the scope, where [Shutdown] waits for it: its context is cancelled, with
// [ErrScopeEnded] if by nothing before, nothing can be started in the scope itself
// any more, and what is left needs no slot of a [Limit]. When the last has ended the exit
// hooks run. What goes wrong from then on is the root's to report. d <= 0 lets
// go at once. Without the option a scope waits as long as it takes.
func DetachAfter(d time.Duration) ScopeOption {
	return scopeOption(func(s *scopeOptions) { p := impatienceOf(s); p.detach, p.detaches = d, true })
}
