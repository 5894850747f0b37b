package otelambit

import (
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/async"
)

// An outcome is how a task has ended. It is the value of ambit.task.outcome.
type outcome string

const (
	ok         outcome = "ok"
	failed     outcome = "error"
	cancelled  outcome = "cancelled"
	timeout    outcome = "timeout"
	heartbeat  outcome = "heartbeat"
	watchdog   outcome = "watchdog"
	panicked   outcome = "panic"
	goexit     outcome = "goexit"
	unfinished outcome = "unfinished" // it had not ended when telemetry was shut down
)

// judge says how the task of e, an end, has ended. errorType is "" if that is no failure.
func judge(e *async.Event) (how outcome, errorType string) {
	defer func() {
		if recover() != nil { // a method of a user's error
			how, errorType = failed, fmt.Sprintf("%T", e.Err)
		}
	}()
	switch how = outcomeOf(e); how {
	case ok, cancelled:
		return how, ""
	case failed:
		return how, fmt.Sprintf("%T", innermost(e.Err))
	default:
		return how, string(how)
	}
}

func outcomeOf(e *async.Event) outcome {
	var (
		thrown *async.PanicError
		limit  *async.TimeoutError
		missed *async.WatchdogError
	)
	switch {
	case e.Err == nil:
		return ok
	case errors.As(e.Err, &thrown):
		return panicked
	case errors.Is(e.Err, async.ErrGoexit):
		return goexit
	case errors.As(e.Cause, &limit) && limit.Task == e.Task:
		return timeout
	case errors.As(e.Cause, &missed) && missed.Task == e.Task:
		if errors.Is(missed, async.ErrNoBeat) {
			return heartbeat
		}
		return watchdog
	case e.Echo:
		return cancelled
	default:
		return failed
	}
}

// innermost returns what err wraps; of several errors the first.
func innermost(err error) error {
	for {
		var inner error
		switch e := err.(type) {
		case *async.ScopeError:
			if len(e.Errors) > 0 {
				inner = e.Errors[0]
			}
		case interface{ Unwrap() error }:
			inner = e.Unwrap()
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				inner = all[0]
			}
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}
