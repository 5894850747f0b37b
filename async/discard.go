package async

// This file is about values that nobody was given. They go to their discard hooks.

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

// discard calls the discard hook. What goes wrong in it is the scope's.
func (x *unclaimed) discard() {
	value := x.value
	x.value = nil // the future may be kept for long
	if err := value.discard(); err != nil {
		x.scope.recordHookError(err)
	}
}

// discardUnclaimed discards the values that nobody was given, and reports
// whether there were any. One at a time is taken under the lock and discarded
// without it: the hook is a user's, and may await the future of another.
func (s *scope) discardUnclaimed() bool {
	for some := false; ; some = true {
		s.mu.Lock()
		e := s.tally.TakeValue()
		if e == nil {
			s.mu.Unlock()
			return some
		}
		x := e.Of.(*unclaimed)
		x.state, x.instead = forfeited, ErrScopeEnded
		s.mu.Unlock()
		x.discard()
	}
}

// OnDiscard sets what happens to a value that nobody will be given, so that
// connections and files are closed: every value is given to a waiter, or f is
// called with it exactly once. That is a value
//
//   - that comes after a waiter was told of an expiry, or after [Future.Cancel],
//   - of a Resolve that was not the first,
//   - beside an error of what the handler has started,
//   - that nobody was given when the scope ends; of a root task, when its future
//     is collected.
//
// f is called on a goroutine of its own, with no lock held, and is waited for: before
// that Resolve returns, before the task settles, or before the scope ends. Later
// waits are given the error that the first waiter was told, else [ErrScopeEnded].
// A panic of f is an error of the scope.
//
// A value that nobody awaits is kept until its scope ends, which in the scope of a server
// is for ever: there await the future, or have the handler close what nobody wants.
//
// A nil f panics, and so does starting a future of another type than f takes.
func OnDiscard[T any](f func(T)) TaskOption {
	if f == nil {
		panic("async: OnDiscard(nil): leave the option out instead")
	}
	return taskOption(func(t *taskOptions) { t.discard = f })
}
