package slots

import "fmt"

// A State is where a task stands. It changes along these arrows only, and from
// every state to Retired:
//
//	New       -> Queued, or what Queued leads to at once
//	Queued    -> Running, or Handed if an executor is to run it
//	Handed    -> Running, Recalled
//	Recalled  -> Returning
//	Running   -> Lent
//	Lent      -> Returning, Running
//	Returning -> Running, Lent
type State uint8

const (
	// New: not submitted yet.
	New State = iota
	// Queued: waits to start, in the queue of one limiter. It holds a slot of
	// every limiter inside that one.
	Queued
	// Handed: holds all its slots. An executor has it, or is being asked to take
	// it, and has not begun.
	Handed
	// Recalled: was Handed, and its slots have been given to others. It holds
	// none, and wants them again when the executor begins.
	Recalled
	// Running: holds all its slots, and its handler runs.
	Running
	// Lent: its handler waits. It holds no slot, because a wait has lent them.
	Lent
	// Returning: no wait lends its slots any more, and it queues to have them
	// again. It holds a slot of every limiter inside the one at which it queues.
	Returning
	// Retired: needs no slot any more. It holds none.
	Retired
)

var stateNames = [...]string{"new", "queued", "handed", "recalled", "running", "lent", "returning", "retired"}

// String returns the name of s in lower case.
func (s State) String() string { return stateNames[s] }

// A Task is what the core knows of one task. T is how the user knows tasks, W
// how it knows waits; the core never looks at either.
//
// Owner, Limiter, Depth, Priority and ByExecutor are set before the task is
// submitted and never changed.
type Task[T, W any] struct {
	Owner    T
	Limiter  *Limiter[T, W] // the innermost
	Priority int            // the greater, the more urgent
	Depth    int32          // how many scopes are around it

	loans int32 // waits that lend its slots; above 0 only if it is Lent or Retired
	state State

	// ByExecutor: it does not run when it has its slots, but when Begin is told.
	ByExecutor bool

	// at is where it queues. Set in Queued and Returning, else nil.
	at *Limiter[T, W]
	// returning is the wait that is told when it has its slots again. Set in
	// Returning, else nil.
	returning *Wait[T, W]
	// prev and next are its neighbours in the one list that it is on: a line
	// (Queued), those that return (Returning), those handed to executors (Handed).
	prev, next *Task[T, W]
}

// State returns where t stands.
func (t *Task[T, W]) State() State { return t.state }

// move changes the state of t. A change that is not in the picture is a bug of
// the code that uses the package.
func (t *Task[T, W]) move(to State) {
	if !allowed[t.state][to] {
		panic(fmt.Sprintf("slots: illegal transition: %v -> %v", t.state, to))
	}
	t.state = to
}

var allowed = [...][Retired + 1]bool{
	New:       {Queued: true, Handed: true, Running: true, Retired: true},
	Queued:    {Handed: true, Running: true, Retired: true},
	Handed:    {Recalled: true, Running: true, Retired: true},
	Recalled:  {Returning: true, Retired: true},
	Running:   {Lent: true, Retired: true},
	Lent:      {Running: true, Returning: true, Retired: true},
	Returning: {Running: true, Lent: true, Retired: true},
	Retired:   {},
}

// A waitState is where a wait stands.
type waitState uint8

const (
	// idle: has never lent anything.
	idle waitState = iota
	// lending: its task has lent its slots for it.
	lending
	// queueing: it has come to its end, and its task queues to have its slots
	// again. It is the task's returning.
	queueing
	// inGrant: it stands in a grant. The caller that Take gave this to notifies it.
	inGrant
)

// A Wait is one wait of a task. It may be used for one wait after another, by
// the same task or by others. The zero value with an Owner is ready.
type Wait[T, W any] struct {
	Owner W
	state waitState
}

// A Grant says that somebody may go on: a wait, or if Wait is nil a task, which
// starts.
type Grant[T, W any] struct {
	Task *Task[T, W]
	Wait *Wait[T, W]
}
