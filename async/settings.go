package async

import (
	"context"
	"time"
)

// defaultHookTimeout bounds every hook that sets no HookTimeout of its own.
const defaultHookTimeout = 5 * time.Second

// taskOptions are the settings of one task; the zero value is the default.
type taskOptions struct {
	name        string
	timeout     time.Duration // 0: none
	grace       time.Duration
	hookTimeout time.Duration // 0: defaultHookTimeout
	onAbort     func(ctx context.Context, cause error) error
	onCancel    func(s *scope) (after func()) // nil: the task does nothing when it is cancelled; see cancelLocked
	discard     any                           // func(T), checked against the future's type
	daemon      bool
	leader      bool
	hung        *hung    // nil: nothing; see added
	on          executor // nil: inherited
	priority    int      // inherited if it is not set
}

// hung is what words hang on few tasks. It stands apart because a million tasks may queue.
type hung struct {
	stops   stops    // nil: none
	heart   pulse    // nil: no beats are expected
	restart rerunner // nil: what has ended is not started again
}

// added returns what words have hung on the task.
func (o *taskOptions) added() (h hung) {
	if o.hung != nil {
		h = *o.hung
	}
	return h
}

// hang returns where words hang something on the task.
func (o *taskOptions) hang() *hung {
	if o.hung == nil {
		o.hung = new(hung)
	}
	return o.hung
}

// stopBy adds what the options of a scope stop its task by.
func (o *taskOptions) stopBy(by stops) {
	if by != nil {
		o.hang().stops = by
	}
}

// scopeOptions are the settings of one scope; the zero value is the default.
type scopeOptions struct {
	name        string
	timeout     time.Duration // 0: none
	hookTimeout time.Duration // 0: inherited
	limit       int           // 0: inherited
	on          executor      // nil: inherited
	observer    func(event)
	impatient   impatient // nil: what is left is waited for as long as it takes
	onFailure   func(error) error
	onPanic     func(p error) error // told what users are given for a panic
	stops       stops               // nil: none
}

// observers is a scope's observer and those of the scopes around it.
type observers struct {
	tell  func(event)
	outer *observers
}

// An eventKind says what happened.
type eventKind uint8

const (
	eventStart eventKind = iota // a handler is about to run
	eventEnd                    // a task is about to settle
	eventPanic                  // a handler has panicked
)

// An event is what observers are told.
type event struct {
	kind  eventKind
	task  string
	took  time.Duration // of an end: since the start
	err   error         // how it ended
	cause error         // of an end: why its context was cancelled, if it was
}
