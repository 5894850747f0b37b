package async

// An Ending says how a scope has ended, or is about to; see [EndingOf].
type Ending uint8

// The endings of a scope.
const (
	Well    Ending = iota // nothing failed, and the scope was not cancelled
	Failed                // something in the scope failed, or a limit of its own has passed
	Stopped               // the scope was told to stop from outside
)

// String returns well, failed or stopped.
func (e Ending) String() string {
	return [...]string{"well", "failed", "stopped"}[e]
}

// EndingOf returns what an outcome says that an exit hook is told: whether the scope
// has ended well, has failed, or was told to stop. A scope that was stopped by its own
// [Timeout], [Heartbeat] or [Watch] has failed. One that its own [Leader] has ended was
// told to stop.
//
//	async.OnExit(ctx, func(ctx context.Context, outcome error) error {
//		if async.EndingOf(outcome) == async.Failed {
//			attempts++ // to be told to stop is no failed attempt
//		}
//		return nil
//	})
//
// EndingOf says the same of an error that [Scope] has returned, but for a scope without
// errors that was cancelled and returned nil: that has ended well.
func EndingOf(outcome error) Ending {
	switch e := outcome.(type) {
	case nil:
		return Well
	case *stopError:
		return endingFor(e.own)
	case *ScopeError:
		if e != nil && e.Cause != nil {
			return endingFor(e.own)
		}
	}
	return Failed
}

func endingFor(own bool) Ending {
	if own {
		return Failed
	}
	return Stopped
}

// ending returns how s, whose outcome so far is given, is ending, and what its exit
// hooks are told. A scope that was cancelled does not end well, whatever its body has
// returned.
func (s *scope) ending(outcome error) (Ending, error) {
	sg := s.t.stopped()
	switch {
	case sg == nil && outcome == nil:
		return Well, nil
	case sg == nil:
		return Failed, outcome
	}
	own := s.broughtOn(sg)
	switch outcome.(type) {
	case nil, *stopError:
		outcome = &stopError{err: sg.err, cause: sg.cause, own: own}
	}
	return EndingOf(outcome), outcome
}
