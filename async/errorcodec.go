package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file makes the errors of this package from the records of the engine, and finds the record
// of an error.

func init() { tree.Codec = errorCodec{} }

// errorCodec is the codec of the engine.
type errorCodec struct{}

func (errorCodec) PanicError(p *tree.Panic) error {
	return &PanicError{Value: p.Value, Stack: p.Stack, Task: p.Task, Also: p.Also, record: p}
}

func (errorCodec) PanicIn(err error) *tree.Panic {
	if e, is := err.(*PanicError); is && e != nil {
		return e.record
	}
	return nil
}

func (errorCodec) ListError(l *tree.Listing) error { return scopeError(l) }

func scopeError(l *tree.Listing) *ScopeError {
	return &ScopeError{
		Scope: l.Scope, Cause: l.Cause, Errors: l.Errs, Dropped: l.Dropped,
		Stopped: l.Stopped, DroppedStopped: l.DroppedStopped,
		paths: l.Paths, said: l.Said, stop: l.Stop, fromInside: l.FromInside,
	}
}

func (errorCodec) ListIn(err error) *tree.Listing {
	e, is := err.(*ScopeError)
	if !is || e == nil {
		return nil
	}
	return &tree.Listing{
		Scope: e.Scope, Cause: e.Cause, Errs: e.Errors, Dropped: e.Dropped,
		Stopped: e.Stopped, DroppedStopped: e.DroppedStopped,
		Paths: e.paths, Said: e.said, Stop: e.stop, FromInside: e.fromInside,
	}
}

func (errorCodec) Unawaited(task string, err error) error {
	switch err.(type) {
	case *PanicError, *UnawaitedError: // which tells of a task further in, and leads to the cause
		return err
	}
	return &UnawaitedError{Task: task, Err: err}
}

func (errorCodec) UnawaitedIn(err error) (task string, failure error, ok bool) {
	if e, is := err.(*UnawaitedError); is && e != nil {
		return e.Task, e.Err, true
	}
	return "", nil, false
}

func (errorCodec) TimeoutError(task string, limit, waited time.Duration, ofAwait bool) error {
	return &TimeoutError{Task: task, Limit: limit, Waited: waited, ofAwait: ofAwait}
}

func (errorCodec) LimitIn(err error) (task string, ok bool) {
	if e, is := err.(*TimeoutError); is && e != nil {
		return e.Task, true
	}
	return "", false
}

func (errorCodec) StragglerError(l *tree.Leftovers) error { return stragglerError(l) }

func stragglerError(l *tree.Leftovers) *StragglerError {
	e := &StragglerError{Scope: l.Scope, More: l.More, Cause: l.Cause}
	for _, s := range l.Left {
		e.Left = append(e.Left, Straggler{Task: s.Task, State: State(s.State), Stack: s.Stack})
	}
	return e
}

func (errorCodec) Rejected(task string, err error) error {
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
func (errorCodec) Saying(err error) (says echo.Saying, ours bool) {
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

func (errorCodec) Is(err error, kind tree.ErrorKind) bool {
	switch kind {
	case tree.MissedSign:
		_, is := err.(*WatchdogError)
		return is
	case tree.HasMemory:
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
