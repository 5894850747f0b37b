package async

// This file is the options that decide which failures of its Go tasks fail a scope.

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
	return scopeOption(func(s *scopeOptions) {
		s.onPanic = func(p error) error { return f(p.(*PanicError)) }
	})
}

// OnFailure asks f about the error of every Go task that fails. Where f
// returns nil the scope carries on, as a server does when one connection
// fails; an error fails the scope with it. f may be called by several
// goroutines at once, with no lock held. It is not asked about panics, Goexit, or
// tasks that ended because the scope was cancelled. If f itself panics, that and
// the error it was asked about are the scope's. A nil f panics.
func OnFailure(f func(error) error) ScopeOption {
	if f == nil {
		panic("async: OnFailure(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { s.onFailure = f })
}
