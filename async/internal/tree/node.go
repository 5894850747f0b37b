package tree

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is the tree: what a task, a scope and a root consist of. Where their functions stand
// is in docs/tasks.md.

// A Kind is what a task was made for.
type Kind uint8

const (
	KindGo        Kind = iota // started by Go
	KindFuture                // started by Execute; has waiters
	KindPromise               // has waiters, but nothing runs
	KindScope                 // a Scope or Shield: runs on the goroutine that called
	KindHook                  // a hook, on a goroutine of its own
	KindRun                   // one run of a task with Restart: a scope on the goroutine of the task
	KindDetached              // started by Detach
	KindLeft                  // stands at the root for a scope that returned without its tasks
	KindChoice                // a future that its children decide; see async/choice.go
	KindFork                  // a future that its children settle; see async/forkjoin.go
	KindContender             // a child of a choice
	KindWorker                // does items; see package items
	KindGroup                 // made by NewGroup: nothing runs in it but what is started
	KindRoot                  // owns what no scope owns
)

// An ExitKind is how a handler ended.
type ExitKind uint8

const (
	ByGoexit ExitKind = iota // neither of the two below, so it was runtime.Goexit
	ByReturn                 // it returned
	ByPanic                  // it panicked, and the panic was recovered
)

// Work is what stands around a task and knows how to run it.
type Work interface {
	Run()             // runs the handler and settles; the body of the goroutine
	Unrun(v *Verdict) // settles a task that never ran, with v
	Func() any        // the handler, for its name
	Future() *Future  // nil if nobody can wait for it
}

// A gathering is a task in which nothing runs but what is started in it: a group. These
// are what the tree tells it, and asks of it.
type gathering interface {
	Work
	Close()                             // it is to end when all that was started in it has
	Dismissing()                        // its owner is about to cancel it, and nobody has before
	CutOff(task string)                 // its dismissal has kept task from being done
	FailedLocked()                      // something has failed in it
	TellOwner(echo bool, f *tally.Fact) // writes to f what its owner is to know of its end
	TellRoot(f *tally.Fact)             // nobody was given its end
}

// A Task is one node of the tree: one handler, on a goroutine. It is also the
// context that the handler is given.
//
// It is kept small because a program may have a million: what a task needs
// only if it starts something, waits, or is asked for its Done channel is in
// its inner scope, which is made on first need, and what only options need is
// in More.
type Task struct {
	Owner      *Scope // the scope that joins it; nil for a root. Set before it is shared.
	prev, next *Task  // in the owner's list; guarded by Owner.Mu

	// Inner is nil until needed; then the task's own scope. A task that ends
	// without one gets endedScope, so that nobody can make one afterwards.
	Inner AtomicPointer[Scope]
	More  *More // nil if nothing in it is set. Set before the task is shared.
	Self  Work  // nil for bodies and roots
	State AtomicInt32
	Kind  Kind
	Exit  ExitKind // written by the handler's goroutine
	early bool     // only of a GoTask: the owner was told when the handler panicked

	ordinal int64 // which of all that were ever started in the owner; written once, under Owner.Mu
}

// More is what few tasks have.
type More struct {
	TaskOptions
	Origin                // of its context, if it differs from its owner's
	seen       *sighting  // when it was started, and began; only if observed. Set before the task is shared
	slot       *slot      // only under a Limit
	Delivery   *Delivery  // only on an Executor
	expiryTold error      // what the first waiter was told instead of the outcome; guarded by Future.Mu
	countedOut AtomicBool // a hook is not among its owner's hooksInTime any more
	hooked     bool       // the abort hook has been started; guarded by Inner.Mu
	differs    bool       // Origin is in use
	derived    bool       // Origin.values is what decides when it is cancelled; see Task.derived
	shielded   bool       // cancellation of what is around it does not reach it
	timed      bool       // Origin.deadline is that of its own timeout
	dismissed  bool       // a daemon or group was told that its owner is done; guarded by Owner.Mu
}

// isScopeOrGroup reports whether users have opened t with the options of a scope.
func (t *Task) isScopeOrGroup() bool { return t.Kind == KindScope || t.Kind == KindGroup }

// Home returns the root that t stands under, that of the process if t is nil.
func (t *Task) Home() *Root {
	switch {
	case t == nil:
		return process
	case t.Owner == nil:
		return t.Inner.Load().Home
	default:
		return t.Owner.Home
	}
}

// The states of a task. It moves down this list only, and may skip.
const (
	// StateQueued: started, but the handler has not begun: it waits for a slot
	// of a Limit or has just been given its goroutine. Only tasks that have a More
	// are ever seen in it.
	StateQueued int32 = iota - 1
	// StateRunning: the handler runs. Only now may the abort hook be called. It
	// is the zero value because most tasks are in it from the first.
	StateRunning
	// StateJoining: the handler has returned; what it started goes on.
	StateJoining
	// StateDone: settled.
	StateDone
)

// A Scope is what a task, a body or a root needs to own others: its children,
// what went wrong, and why it was cancelled.
//
// A body and a root have one from the first, a task on first need; see makeScope.
type Scope struct {
	// These are set before anything is started in the scope, and never change. Tasks that are
	// started in it inherit most of them.
	Task      *Task // the task this is the inner scope of
	Home      *Root // the root of the tree
	Limit     *limiter
	slot      *slot // what the code that runs with this scope's context lends while it waits; nil for nothing
	Observers *observers
	On        executor      // nil: goroutines
	opts      *ScopeOptions // nil: all defaults
	Priority  int           // of what is started in it
	from      *Origin       // of the contexts of what is started in it
	depth     int32         // how many scopes are around it

	// young: it can be found, and its maker has not looked yet at what is above it;
	// see makeScope.
	young AtomicBool

	// number is what a look calls the scope by; 0: nobody has looked yet. See NumberOf.
	number AtomicInt64

	// Why is why its context is done; set once. Without std, Cancel sets it under Mu; whoever
	// asks (stopped) may set it at any time, without Mu. Nothing follows from Why alone: Cancel
	// passes it on, and sets cancelled. Seal sets both and tells the waits.
	Why AtomicPointer[StopError]
	// std is made when somebody asks for Done; set once, under Mu. From then on it
	// decides why the scope is cancelled. stdHere is what it points to.
	std     AtomicPointer[stdContext]
	stdHere stdContext
	// parker is the scope's own waiter, notified of every cancellation. One wait at
	// a time uses it; another is on listeners.
	parker AtomicPointer[Waiter]

	hooksInTime AtomicInt32 // hooks that run and are in time
	// leftTasks: Scope returns, or has returned, without its tasks, which are no part of it
	// any more. It is set under Mu in the step in which what Scope tells is taken.
	leftTasks AtomicBool

	// Mu guards what follows. It is held briefly, never while user code runs or
	// anything blocks. The Mu of a child's scope is taken before that of its owner.
	Mu          Mutex
	children    *Task // everything that has not left, promises apart; the last one first
	promises    *Task // those nobody has resolved; nothing waits for them
	Live        int32 // how many children there are
	dismissible int32 // how many of them are daemons or groups, which the end of s dismisses
	started     int64 // how many children and promises there ever were

	noted     *Noted  // what other packages wait for with the context of s
	listeners *Waiter // waits of the task that do not use parker; those that are deaf are told by their own ctx
	// joiner is the waiter of the goroutine that joins, while it waits for the
	// children. The goroutine takes it back under Mu: then nobody can notify it.
	joiner *Waiter
	seldom *Seldom // nil until one of its fields is set

	Exits *ExitHook    // the one registered last; the others follow
	Tally *tally.Tally // nil until something goes wrong, or a value waits to be given

	unwatch func() bool // takes us off the context we watch

	led bool // a leader in it has cancelled it, or is about to

	// These are never cleared.
	Ended     bool // nothing can be started any more
	cancelled bool // Why was passed on: to waits, hooks, and what is below
	credited  bool // a caller was told that it was the first to cancel s; see lockToCancel
	summed    bool // the outcome is being made; what fails now is the root's to report
	dismissed bool // the daemons and groups are being, or have been, cancelled
	gaveUp    bool // DetachAfter has passed
}

// newScope returns the inner scope of t, with what it inherits.
func newScope(t *Task) *Scope {
	s := &Scope{Task: t}
	if o := t.Owner; o != nil {
		s.inherit(o)
	}
	if m := t.More; m != nil {
		s.slot, s.Priority = m.slot, m.Priority
	}
	return s
}

// StopBeforeEnd returns why s was cancelled, nil if it was not before it ended. Its end is a reason
// for its context, not for its outcome.
func (s *Scope) StopBeforeEnd() *StopError {
	if stop := s.Why.Load(); stop != endedStop {
		return stop
	}
	return nil
}

// inherit takes over from the owner what holds for everything inside it. The
// origin of its task has been set. A Limit, an observer or an executor of its own
// is set after that.
func (s *Scope) inherit(o *Scope) {
	s.Home, s.Limit, s.Observers, s.On, s.depth, s.Priority = o.Home, o.Limit, o.Observers, o.On, o.depth+1, o.Priority
	s.from = s.Task.origin()
}

// TaskOrNil returns the task that s is the inner scope of; nil for a nil s.
func (s *Scope) TaskOrNil() *Task {
	if s == nil {
		return nil
	}
	return s.Task
}

// An Origin is what a task's context takes over from what is around it. Tasks
// that are started with their owner's own ctx share the origin of the owner: so
// no question walks from level to level up to the root.
type Origin struct {
	// task is the nearest task that something else may cancel than our own walk from
	// above, see cancel.go: the ctx it was started with, its time limit or, if it is
	// shielded, Shutdown. It is nil if there is none. All that is between it and the
	// owner of the origin is cancelled by our walk only, and remembers that itself.
	task *Task

	values   context.Context // where values are looked up; nil: there are none
	deadline time.Time       // the earliest that is known; zero: none
}

// nowhere is the origin of what has nothing around it.
var nowhere Origin

// stdContext is a standard context and the function that cancels it.
type stdContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// A Root owns what no scope owns: top scopes, root tasks, detached tasks and
// stragglers. There is one for the process; a test brings its own in its ctx.
type Root struct {
	t       Task
	Scope   Scope
	lost    func(error)  // told what there is nobody else to tell; nil prints
	text    func(string) // told what tasks say as they are stopped, if nobody else is; nil prints
	closing bool         // Shutdown has been called; guarded by Scope.Mu
	walks   AtomicInt32  // how many cancellations and dismissals are on their way; see StoppedByNow
	// cancelling says of a task whether Shutdown is about to cancel it; nil while Shutdown cancels nothing.
	cancelling AtomicPointer[func(*Task) bool]
	Top        *Task // the scope of a test, of which Live and Shutdown see what is in it; nil: none. Never changes
}

// A Naming is what a task is called by. It refers neither to the task nor to what
// its function has captured, so it may be kept for longer.
type Naming struct {
	given string  // its Name, "" if it has none
	label string  // if it has none: what it is, for something of ours
	pc    uintptr // if it is nothing of ours: that of its function
}

// endedStop is why the context of a scope or task that has ended is done.
var endedStop = Canceled(ErrScopeEnded)

// endedScope is the inner scope of every task that ended without one. It has
// ended before the first task starts, refuses everything, and is never locked
// for long.
var endedScope = new(Scope)

// process is the root of contexts that carry none. It has no context of its
// own, so nothing of one synctest bubble can be left in it for the next.
var process = new(Root)

// origin returns where t's context comes from.
func (t *Task) origin() *Origin {
	switch m := t.More; {
	case m != nil && m.differs:
		return &m.Origin
	case t.Owner != nil:
		return t.Owner.from
	default:
		return &nowhere
	}
}
