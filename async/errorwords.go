package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file makes the errors of this package of what the engine knows, and knows them again.

func init() { words = ourWords{} }

// ourWords are the words of the engine.
type ourWords struct{}

func (ourWords) PanicError(p *panicRecord) error {
	return &PanicError{Value: p.value, Stack: p.stack, Task: p.task, Also: p.also, record: p}
}

func (ourWords) PanicIn(err error) *panicRecord {
	if e, is := err.(*PanicError); is && e != nil {
		return e.record
	}
	return nil
}

func (ourWords) ListError(l *listing) error { return scopeError(l) }

func scopeError(l *listing) *ScopeError {
	return &ScopeError{
		Scope: l.scope, Cause: l.cause, Errors: l.errs, Dropped: l.dropped,
		Stopped: l.stopped, DroppedStopped: l.droppedStopped,
		paths: l.paths, said: l.said, stop: l.stop, own: l.own,
	}
}

func (ourWords) ListIn(err error) *listing {
	e, is := err.(*ScopeError)
	if !is || e == nil {
		return nil
	}
	return &listing{
		scope: e.Scope, cause: e.Cause, errs: e.Errors, dropped: e.Dropped,
		stopped: e.Stopped, droppedStopped: e.DroppedStopped,
		paths: e.paths, said: e.said, stop: e.stop, own: e.own,
	}
}

func (ourWords) Unawaited(task string, err error) error {
	switch err.(type) {
	case *PanicError, *UnawaitedError: // which tells of a task further in, and leads to the cause
		return err
	}
	return &UnawaitedError{Task: task, Err: err}
}

func (ourWords) UnawaitedIn(err error) (task string, failure error, ok bool) {
	if e, is := err.(*UnawaitedError); is && e != nil {
		return e.Task, e.Err, true
	}
	return "", nil, false
}

func (ourWords) TimeoutError(task string, limit, waited time.Duration, ofAwait bool) error {
	return &TimeoutError{Task: task, Limit: limit, Waited: waited, ofAwait: ofAwait}
}

func (ourWords) LimitIn(err error) (task string, ok bool) {
	if e, is := err.(*TimeoutError); is && e != nil {
		return e.Task, true
	}
	return "", false
}

func (ourWords) StragglerError(l *leftovers) error { return stragglerError(l) }

func stragglerError(l *leftovers) *StragglerError {
	e := &StragglerError{Scope: l.scope, More: l.more, Cause: l.cause}
	for _, s := range l.left {
		e.Left = append(e.Left, Straggler{Task: s.task, State: State(s.state), Stack: s.stack})
	}
	return e
}

func (ourWords) Rejected(task string, err error) error {
	rejected := &RejectedError{Task: task, Err: err}
	// A pool behind the executor may have refused.
	if why, worker := err.(*RejectedError); worker && why != nil && why.Worker != "" {
		rejected.Worker, rejected.Err = why.Worker, why.Err
	}
	return rejected
}

// A stoppable error is that of a poll or of a task with Restart, which may have been stopped. An
// error of a user that embeds one has its method, too: err is what was asked, and is ours if it is
// the error itself.
type stoppable interface {
	stoppedBy(err error) (why, memory error, ours bool)
}

// Saying returns what err says. A type of a user that embeds one of these is the user's.
func (ourWords) Saying(err error) (says echo.Saying, ours bool) {
	switch e := err.(type) {
	case *ScopeError:
		if e != nil && e.Dropped == 0 {
			return echo.Saying{Cause: e.Cause, Errs: e.Errors, Rest: e.Stopped}, true
		}
	case *UnawaitedError:
		if e != nil {
			return echo.Saying{Errs: []error{e.Err}}, true
		}
	case stoppable:
		why, memory, ours := e.stoppedBy(err)
		if !ours {
			return echo.Saying{}, false
		}
		return echo.Saying{Errs: []error{why}, Rest: []error{memory}}, true
	case *StragglerError:
		if e != nil && e.cutShort != nil {
			return echo.Saying{Cause: e.cutShort}, true
		}
	case *TimeoutError, *PanicError:
	default:
		return echo.Saying{}, false
	}
	return echo.Saying{More: true}, true
}

func (ourWords) Is(err error, kind errorKind) bool {
	switch kind {
	case missedSign:
		_, is := err.(*WatchdogError)
		return is
	case hasMemory:
		e, maybe := err.(stoppable)
		if !maybe {
			return false
		}
		_, _, ours := e.stoppedBy(err)
		return ours
	default:
		e, maybe := err.(interface{ isCount(err error) bool })
		return maybe && e.isCount(err)
	}
}
