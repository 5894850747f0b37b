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
	Observers   []*Observer   // told in this order
	Profile     *Observer     // nil: none; told before Observers
	impatient   impatient     // nil: what is left is waited for as long as it takes
	OnFailure   func(error) error
	OnPanic     func(p error) error // told what users are given for a panic
	Stops       Stops               // nil: none
}

// An EventKind says what happened.
type EventKind uint8

const (
	eventStart   EventKind = iota // a handler is about to run
	eventEnd                      // a task is about to settle
	eventPanic                    // a handler has panicked
	eventQueued                   // a task is on its way to its handler
	eventSkipped                  // a task is about to settle whose handler was not called
	eventWaited                   // a wait of a task is over

	givesValues EventKind = 7 // no event: an observer gives tasks values
)

// Kinds is a set of kinds of events: one bit for each.
type Kinds uint8

// UsualKinds are those that an observer is told of which does not say.
const UsualKinds Kinds = 1<<eventStart | 1<<eventEnd | 1<<eventPanic

// With returns the set with kind in it.
func (k Kinds) With(kind EventKind) Kinds { return k | 1<<kind }

// An Event is what observers are told.
type Event struct {
	Kind   EventKind
	Of     *Task // the task, which is its context, too
	Task   string
	Queued time.Duration // until its start
	Took   time.Duration // of an end: since the start; of a wait: how long it was
	Joined time.Duration // of an end, under an observer that gives values: since the handler has returned
	Err    error         // how it ended
	Cause  error         // of an end: why its context was cancelled, if that was for nothing inside it
	Echo   bool          // of an end: Err says no more than that
	PC     uintptr       // where it was started; 0: nobody asks for eventQueued, or it is not known
	On     *Task         // of a wait for a future: whose
	Part   any           // of a wait that another package has noted
	Text   string        // of such a wait
}

// A sighting is when an observed task was started, and when it began. The task's More has it from
// before the task is shared; lookers read began at any time.
type sighting struct {
	queued time.Duration // on our clock; 0: it did not queue
	began  AtomicInt64   // on our clock; 0: it has not
	pc     uintptr       // of the call that has started it
}

// An Observer is what is told of the tasks of a scope. A nil function is not called.
type Observer struct {
	Self  any   // what users know it as, if that is a pointer; nil: it is not the same as any other
	Kinds Kinds // that Tell is told of
	Tell  func(Event)
	// Enter is called before Tell is told of a start. It returns ctx, which has the values of the task
	// and is never done, or one that is derived from ctx by adding values.
	Enter func(ctx context.Context, e Event) context.Context
	// Begin is Enter for what is ours. It is not guarded, and called on the goroutine of the handler. around has the
	// values of the ctx that the task was started with, and nothing that others have added.
	Begin func(ctx, around context.Context, e Event) (given context.Context, ends Ends)
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
	all   Kinds                              // of it and the outer ones
	guard func(in *Scope, call func() error) // calls call; what goes wrong in that is an error of in
}

// and returns o, and inside it the observer that is added, unless that is among them already.
func (o *observers) and(added *Observer, guard func(*Scope, func() error)) *observers {
	for x := o; x != nil; x = x.outer {
		if added.Self != nil && x.Self == added.Self {
			return o
		}
	}
	all := added.Kinds
	if added.Enter != nil || added.Begin != nil {
		all = all.With(givesValues)
	}
	if o != nil {
		all |= o.all
	}
	return &observers{added, o, all, guard}
}

// ask reports whether one of o asks for kind.
func (o *observers) ask(kind EventKind) bool { return o != nil && o.all&(1<<kind) != 0 }

// tell tells o of e, which is of in, if it asks for that, with no lock held.
func (o *observers) tell(in *Scope, e Event) {
	if o.Kinds&(1<<e.Kind) != 0 {
		o.guard(in, func() error { o.Tell(e); return nil })
	}
}

// TellObservers calls every observer that asks for it from the inside out; what goes wrong in one of
// them is an error of s.
func TellObservers(s *Scope, e Event) {
	for o := s.Observers; o != nil; o = o.outer {
		o.tell(s, e)
	}
}
