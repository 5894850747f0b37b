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
	Observer    *Observer     // nil: nobody is told
	Profile     *Observer     // nil: none; told before Observer
	impatient   impatient     // nil: what is left is waited for as long as it takes
	OnFailure   func(error) error
	OnPanic     func(p error) error // told what users are given for a panic
	Stops       Stops               // nil: none
}

// An EventKind says what happened.
type EventKind uint8

const (
	eventStart EventKind = iota // a handler is about to run
	eventEnd                    // a task is about to settle
	eventPanic                  // a handler has panicked
	eventSkip                   // a task was cancelled before it ran; only for observers that give values
	eventWait                   // a wait for a future has ended; as eventSkip
)

// An Event is what observers are told.
type Event struct {
	Kind  EventKind
	Of    *Task // the task, which is its context, too
	Task  string
	On    *Task         // of a wait: what it was for
	Took  time.Duration // of an end: since the start; of a wait
	Err   error         // how it ended
	Cause error         // of an end: why its context was cancelled, if it was
	Echo  bool          // of an end: Err says no more than that
	// Queued is, of an end, how long the handler had not begun; Joined is how long it had returned. They are
	// known under observers that give values.
	Queued, Joined time.Duration
}

// An Observer is what is told of the tasks of a scope. What is nil is not asked.
type Observer struct {
	Tell func(Event)
	// Enter is called before Tell is told of a start. It returns ctx, which has the values of the task
	// and is never done, or one that is derived from ctx by adding values. It is guarded.
	Enter func(ctx context.Context, e Event) context.Context
	// Begin is Enter for what is ours. It is called on the goroutine of the handler.
	Begin func(ctx context.Context, e Event) (given context.Context, ends Ends)
}

// Ends are called when a task comes to its end; nil: nobody is.
type Ends struct {
	Returned func(stop *StopError) // on the goroutine of the handler, which has returned; why it was told to stop
	Ended    func()                // all that the task has started has ended
}

// observers is a scope's observer and those of the scopes around it.
type observers struct {
	*Observer
	outer *observers
	gives bool // it, or one of the outer, has values to give
}

// and returns o, and inside it the observer that is added.
func (o *observers) and(added *Observer) *observers {
	gives := added.Enter != nil || added.Begin != nil || o.give()
	return &observers{added, o, gives}
}

// give reports whether one of o gives values to tasks.
func (o *observers) give() bool { return o != nil && o.gives }
