package tree

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/slots"
	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is what the tree consists of beside its nodes: how something has ended, who
// waits for it, and what is done for it.

// Future is what a Future is without its type.
type Future struct {
	Task Task

	Mu Mutex // guards what follows; taken before Scope.Mu
	// waiters is the list of those parked on f, and of one that stands for Done. It
	// is nil once f is done.
	waiters *Waiter
	// HolderTold: whoever holds the handle was told an expiry, or has cancelled the task. Its error
	// is no failure of the scope then. It is set before f is done, never after.
	HolderTold bool
	// valuePromised: waiters will be given the value, so it is not discarded. At most one of
	// valuePromised and More.expiryTold is set: the first wins.
	valuePromised bool

	// Wanted counts the AwaitAlls that will be given the outcome, parked on f or
	// not; see Unwant. It is counted down under Mu.
	Wanted AtomicInt32
	// Err is written before the task is done, never after. It is an *Unclaimed if nobody
	// was given the outcome by then: read it by Give.
	Err error
}

// The news that a waiter may have got.
const (
	gotSettled uint8 = 1 << iota // what it waits for
	gotExpired                   // its time limit
	gotStop                      // its context is done
	gotSlot                      // its slot of a Limit back; comes with gotSettled
)

// A Waiter is one goroutine that waits. A scope makes one and uses it for its
// waits one after another; a wait beside another, or outside all scopes, takes
// one from a pool. It parks on a condition variable and not on a channel
// because channels may not pass from one synctest bubble to another, nor may
// timers: those stay with the waiter of a scope and are not pooled.
type Waiter struct {
	mu      Mutex // innermost: no other lock is taken while it is held
	cond    Cond
	got     uint8         // gotSettled and so on; guarded by mu
	until   time.Duration // when the wait expires, on our clock; 0: never. Guarded by mu
	armed   time.Duration // when timer fires; 0: it is not running. Guarded by mu
	timer   *time.Timer   // guarded by mu
	turn    int           // counts the timers, so that an old one is known; guarded by mu
	bubble  bool          // timer is one of a synctest bubble; guarded by mu
	bubbled bool          // the same, as the waiting goroutine has seen it
	taken   bool          // off the future's list, to be notified without the lock; guarded by Future.Mu
	busy    AtomicBool    // only for a scope's own waiter: a wait uses it

	prev, next   *Waiter       // on the list of a future; guarded by Future.Mu
	lprev, lnext *Waiter       // on the list of a scope; guarded by Scope.Mu
	deaf         bool          // not to be told when that scope is cancelled; guarded by Scope.Mu
	done         chan struct{} // closed instead of waking anybody; see DoneChannel
	by           *Task         // the task that waits; nil if it is not known
	Slot         *slot         // lent while we wait; nil if there is none; guarded by Future.Mu or Scope.Mu
	loan         loan          // of Slot; guarded by limiter.mu

	// The number of this wait, and its future, for the search for await cycles. serial
	// is odd while w is on the list of a future, which is on: it is stored before
	// serial becomes odd. Both are written under the mu of that future.
	serial AtomicInt64
	on     AtomicPointer[Future]
}

// An Unclaimed outcome stands in the future's Err, and stays there; it has the
// methods of an error only for that. It refers to its scope, but neither the scope
// nor its tally refers to the future: a scope that lasts for a year keeps the
// errors that nobody was given (32 and a count), not the futures.
type Unclaimed struct {
	Verdict Verdict // of an error
	isValue bool    // it is a value, and Verdict is empty
	// value is read by the goroutine whose claim or forfeit was first, and by no
	// other: that is what makes it given or discarded once.
	value Discarded

	// beside is the value that comes with an error, of a choice that gives both;
	// nil: there is none. It is claimed for itself.
	beside *Unclaimed

	scope *Scope     // in whose tally it is
	fact  tally.Fact // what the tally is told; made before any lock is taken
	task  Naming     // of which task it is an error; empty for a group
	// late: the scope had summed up, so the root is told. Written before f is
	// settled.
	late bool

	// These are guarded by Scope.Mu.
	entry tally.Entry // where it stands in the tally while it is open
	state claimState

	// instead is what the future holds after the value was discarded. It is written
	// under Scope.Mu with the step to forfeited; a claim that has seen that step
	// may read it without the lock.
	instead error
}

// claimState says what has become of an unclaimed outcome.
type claimState uint8

const (
	openClaim claimState = iota // nobody was given it
	claimed                     // somebody was
	forfeited                   // too late: the scope has it, or it was discarded
)

// A Verdict is how a task or scope ended. It is handed around by pointer and
// written where it is needed in the end, because it ends every task: measured,
// by value it made stacks grow, which cost more than a task.
type Verdict struct {
	Err   error  // nil for success; what is given to a waiter
	Panic *Panic // set if it ended in a panic; Err is, or lists, the same then
	Cause error  // why its context was cancelled, if it was

	// Echo: Err says only that it, the task itself, was cancelled with Cause. Whether that
	// counts is for the owner to say: only if the owner was cancelled with the same cause is
	// there nothing new in it, and the class of the fact is tally.Echo; see Verdict.fact.
	Echo bool
	// bare: Err is an echo that says nothing besides.
	bare bool
	// alone: Err says only what the handler has returned, or why it was cancelled;
	// nothing of what it has started. Only of that a daemon is excused.
	alone bool
	// Goexit: it, or a task of it, called runtime.Goexit. Err says so, too.
	Goexit bool
	// Partial: the value holds Err already, as that of Settle does. A waiter gets
	// the value and no error, but if nobody is given it the scope gets Err.
	Partial bool
	// abandoned: it is a promise that was neither resolved nor rejected.
	abandoned bool

	Value Discarded // to be discarded if nobody is given it; nil without a discard hook
}

// Discarded is a value with its discard hook.
type Discarded interface{ Discard() error }

// An ExitHook is what is to be done when a scope ends: a call of the user's
// function, or telling another package of ours. Either Call or ender is set.
//
// The hooks of a scope are a doubly linked list, the one registered last first.
// A scope may last for a year while a million workers and queues come and go:
// each of them takes itself off in constant time and leaves nothing behind.
type ExitHook struct {
	Call  func(ctx context.Context, outcome error) error
	ender bridge.Ender

	scope      *Scope    // whose list it is, or was, on. Set before it is on the list; see Recall.
	prev, next *ExitHook // on the list of scope; guarded by Scope.Mu
	listed     bool      // on the list; guarded by Scope.Mu
}

// A Delivery is a task on its way to a goroutine of an executor. Several may
// decide what becomes of the task, and the first does: the executor, by running
// it or by refusing it, or a cancellation that comes before.
type Delivery struct {
	Executor executor   // nil: the goroutine that delivers it runs it
	begun    AtomicBool // the executor has called the function that it was given
	decided  AtomicBool
}

// A slot is a task as package slots knows it; a loan, which package slots calls a wait, is
// that of a slot while the task waits.
type (
	slot  = slots.Task[*Task, *Waiter]
	loan  = slots.Wait[*Task, *Waiter]
	grant = slots.Grant[*Task, *Waiter]
)

// A limiter bounds how many tasks of a scope, and of those inside it, run at
// once.
type limiter struct {
	// mu guards Core and everything that belongs to it. A limiter and those
	// nested in it share it, so a slot passes from one to the next in one step.
	// Taken after Future.Mu and Scope.Mu, before Waiter.mu.
	mu   *Mutex
	Core *slots.Limiter[*Task, *Waiter]
}

// A stallHook is a call of what OnStall was given.
type stallHook struct{ GoTask }

// GoTask is a task started by Go, Detach, or as a hook.
type GoTask struct {
	Task    Task
	Handler func(context.Context) error
}

// An exitRun is an exit hook that runs, or the join of something of another
// package of ours.
type exitRun struct {
	GoTask
	joiner bridge.Joiner // nil for a hook
	// late is the TimeoutError of a hook that had not returned when its time was up. Only its
	// goroutine uses it.
	late error
}

// A Noted is a wait of another package. Its memory is the caller's, who may use it for one wait
// after another.
type Noted struct {
	s          *Scope
	prev, next *Noted // on the list of s; guarded by s.Mu
	part       any
	text       string
	began      time.Duration // on our clock; 0: no observer asks for waits
	serial     int64         // which wait of this Noted it is
}

// Settled reports whether f has its outcome.
func (f *Future) Settled() bool { return f.Task.State.Load() == StateDone }

// A oneWait is one wait of one goroutine for one future.
type oneWait struct {
	f        *Future
	ctx      context.Context
	timeout  time.Duration
	w        *Waiter
	under    *Scope        // whose cancellation ends the wait; nil if ctx is not its own
	isParker bool          // w is the parker of under
	heard    bool          // an observer asks for waits
	listed   *Scope        // on whose list w is, if it is no parker; nil: none
	began    time.Duration // on our clock
	stop     func() bool   // takes w off ctx; nil if it is not on it
	over     func()        // tells the executor of f, if that is to be told, that the wait has ended
}

// The interfaces of the values that features, such as Restart, hang on a task or scope. The tree
// calls these, and no function of a feature.
type (
	// Stops cancel a task when something says so that they watch.
	Stops interface {
		Watch(t *Task)     // before the handler of t is called; t has a More, and is a member of its owner
		End(onItsOwn bool) // when t ends; onItsOwn: the caller may be what has cancelled t
	}
	// A Pulse expects signs of life of a handler.
	Pulse interface {
		Start(s *Scope) // the handler of s is about to be called
		Again() Pulse   // for another run of the handler
	}
	// An impatient scope does something about tasks that do not end. It is an interface so that
	// those who tell it need not know how it tells who is left.
	impatient interface {
		joins(s *Scope)                            // s waits for what is left
		cancelledLocked(s *Scope, stop *StopError) // s was cancelled with stop
		overranLocked(s *Scope)                    // a hook of s, which was not cancelled, has overrun its time
		// leaveBehind returns how s returns without what is left; nil if nobody is.
		leaveBehind(s *Scope, handler tally.HandlerEnd) *Verdict
	}
	// A rerunner calls the handler of a task again when it has failed.
	rerunner interface {
		StandBefore(t *Task, m *More) // t is about to be started with m
	}
)

// An executor is an [Executor].
type executor = interface{ Execute(task func()) error }

// A StopError is why a context is done: what its Err and its Cause return. It is
// also the error of a wait or task that was stopped, where the two differ.
type StopError struct {
	Err, Cause error
	fromInside bool // for an exit hook: the cause comes from inside the scope; see EndingOf

	ended AtomicPointer[Scope] // see endedScope
}

// Error returns the text of the cause.
func (stop *StopError) Error() string { return stop.Cause.Error() }

// Unwrap returns the cause, and the error of the context.
func (stop *StopError) Unwrap() []error { return []error{stop.Cause, stop.Err} }

// because returns the cause; nil for a nil stop, of what was not told to stop.
func (stop *StopError) because() error {
	if stop == nil {
		return nil
	}
	return stop.Cause
}

// AsError returns the error of what was told to stop, which matches Err and Cause; nil for a
// nil stop. It asks no Is of a user: that may use the scope, which would ask it again.
func (stop *StopError) AsError() error {
	if stop == nil || tally.Same(stop.Err, stop.Cause) {
		return stop.because()
	}
	if stop.Err == context.DeadlineExceeded {
		if _, timeout := Codec.LimitIn(stop.Cause); timeout {
			return stop.Cause
		}
	}
	return stop
}

// verdict returns how something has ended that was stopped with stop, and says nothing else.
func (stop *StopError) verdict() Verdict {
	return Verdict{Err: stop.AsError(), Cause: stop.Cause, Echo: true, bare: true, alone: true}
}

// Canceled returns the StopError of an abort with the given cause.
func Canceled(cause error) *StopError { return &StopError{Err: context.Canceled, Cause: cause} }
