package async

// This file is about values that nobody was given. They go to their discard hooks.

// discarded is a value with its discard hook.
type discarded interface{ discard() error }

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
