package tree

import (
	"context"
	"time"
)

// defaultHookTimeout bounds every hook that sets no HookTimeout of its own.
const defaultHookTimeout = 5 * time.Second

// TaskOptions are the settings of one task; the zero value is the default.
type TaskOptions struct {
	Name        string
	Timeout     time.Duration // 0: none
	Grace       time.Duration
	HookTimeout time.Duration // 0: defaultHookTimeout
	OnAbort     func(ctx context.Context, cause error) error
	OnCancel    func(s *Scope) (after func()) // nil: the task does nothing when it is cancelled; see cancelOne
	Discard     any                           // func(T), checked against the future's type
	Daemon      bool
	Leader      bool
	Hung        *hung    // nil: nothing; see Added
	On          executor // nil: inherited
	Priority    int      // inherited if it is not set
}

// hung is what features hang on few tasks. It stands apart because a million tasks may queue.
type hung struct {
	Stops   Stops    // nil: none
	Heart   Pulse    // nil: no beats are expected
	Restart rerunner // nil: what has ended is not started again
}

// Added returns what features have hung on the task.
func (o *TaskOptions) Added() (h hung) {
	if o.Hung != nil {
		h = *o.Hung
	}
	return h
}

// Hang returns where features hang something on the task.
func (o *TaskOptions) Hang() *hung {
	if o.Hung == nil {
		o.Hung = new(hung)
	}
	return o.Hung
}

// StopBy adds what the options of a scope stop its task by.
func (o *TaskOptions) StopBy(by Stops) {
	if by != nil {
		o.Hang().Stops = by
	}
}

// endStops is called when the task of m, which may be nil, ends; see Stops.
func (m *More) endStops(onItsOwn bool) {
	if m != nil && m.Added().Stops != nil {
		m.Hung.Stops.End(onItsOwn)
	}
}

// ScopeOptions are the settings of one scope; the zero value is the default.
type ScopeOptions struct {
	Name        string
	Timeout     time.Duration // 0: none
	HookTimeout time.Duration // 0: inherited
	Limit       int           // 0: inherited
	On          executor      // nil: inherited
	Observer    func(Event)
	Kinds       Kinds     // that Observer is told of
	impatient   impatient // nil: what is left is waited for as long as it takes
	OnFailure   func(error) error
	OnPanic     func(p error) error // told what users are given for a panic
	Stops       Stops               // nil: none
}
