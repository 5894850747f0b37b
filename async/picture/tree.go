package picture

import (
	"strconv"
	"time"
)

// An ID names a task for as long as the process runs: it was the Ordinal-th that was ever started in
// the scope with that number. Scopes are numbered when they are looked at first, the root of the
// process is 1. The zero ID is no task's.
type ID struct{ Scope, Ordinal int64 }

// String returns 4.2 for the second task of scope 4.
func (id ID) String() string {
	return strconv.FormatInt(id.Scope, 10) + "." + strconv.FormatInt(id.Ordinal, 10)
}

// A Tree is one picture.
type Tree struct {
	At         time.Time
	Took       time.Duration // how long the look took
	Process    string        // the name of the program
	PID        int
	Goroutines int // of the whole process, also those that are no task's
	Live       int // how many tasks were seen, also those that are in no Node

	Root     int64 // the number of the scope at the top
	Started  int64 // how many were ever started in that; 0: it was not looked at, for only a task in it was asked for
	Problems []Problem
	Rings    []Ring
	Nodes    []Node // a task comes before those that were started in it, and those the oldest first
	Parts    []Part
	Groups   []Group // the tasks that are in no Node
	Cut      Cut
}

// A Node is a task, the body of a Scope, a hook, or whatever else a scope owns.
type Node struct {
	ID    ID
	Scope int64  // the number of its own scope; 0: nothing was started in it, and it has waited for nothing
	Kind  Kind   // what it was made for
	Name  string // the one that it was given, or that of its function
	Place string // where its function stands, as folder/file.go:12; "" where that is not known
	State State
	Begun time.Time // when its handler began; zero: nobody observes it, so that is not known

	Told    *Told    // it was told to stop; nil: it was not
	Waits   []Wait   // what it waits for itself, not what is in it
	Waiters int      // how many waits for it were seen
	Sought  bool     // of a future: somebody waits for it, or watches its Done
	Limit   *Limit   // that it has brought; nil: none
	Restart *Restart // nil: it has not failed, or is not started again
	Daemon  bool     // its owner does not wait for it, but dismisses it

	// These are of its own scope.
	Live      int   // how many members that has
	Started   int64 // how many there ever were
	Unclaimed int   // failures of futures that nobody has been given so far
}

// A Kind is what something was made for.
type Kind string

// The kinds of nodes.
const (
	KindGo        Kind = "go"
	KindFuture    Kind = "future"
	KindPromise   Kind = "promise"
	KindScope     Kind = "scope" // a call of Scope or Shield, or of what opens one, such as ForEach
	KindHook      Kind = "hook"
	KindRun       Kind = "run" // one run of a task with Restart
	KindDetached  Kind = "detached"
	KindLeft      Kind = "left" // stands for a scope that has returned without its tasks
	KindChoice    Kind = "choice"
	KindFork      Kind = "fork"
	KindContender Kind = "contender"
	KindWorker    Kind = "worker"
	KindGroup     Kind = "group"
	KindRoot      Kind = "root"
)

// A State is how far a task has come.
type State string

// The states of a node.
const (
	StateQueued  State = "queued"  // its handler has not begun: it waits for a slot, an executor or its goroutine
	StateRunning State = "running" // its handler runs, or waits
	StateJoining State = "joining" // its handler has returned; what it started goes on
	StatePausing State = "pausing" // between two runs
	StateDone    State = "done"
)

// Told says that a task was told to stop.
type Told struct {
	Type  string // of the cause
	Cause string // its text, if texts were asked for
}

// A Way is how something waits.
type Way string

// The ways of a wait.
const (
	WayAwait    Way = "await"    // for a future or group
	WayJoin     Way = "join"     // for what was started in it
	WayLimit    Way = "limit"    // for a slot of a Limit
	WayExecutor Way = "executor" // until an executor begins with it
	WayPart     Way = "part"     // for its turn in a part of another package, or for something of that
	WaySleep    Way = "sleep"
	WayChoice   Way = "choice" // for one of its contenders
)

// A Wait is one thing that a task waits for.
type Wait struct {
	How  Way
	On   ID            // of WayAwait: the task
	Gone bool          // of WayAwait: the task is not in the tree any more
	Name string        // of what is waited for
	Part int           // of WayPart: which of Tree.Parts, from 1 on; 0: none
	Text string        // of WayPart: what the package that waits says
	Left time.Duration // until its own limit ends the wait; 0: it has none, or nobody knows
	Mark uint64        // the same of a task in two pictures: it is one wait, which has lasted; 0: that is not known
	// Own: the wait has a context other than that of the task, which may end it.
	Own bool
}

// A Limit is the Limit of a scope.
type Limit struct {
	Slots, Held, Queued int
	Holders             []ID // at most 32
}

// Restart says how often a task with Restart has failed.
type Restart struct {
	Failures int    // since the last run that was healthy
	Last     string // the type of the last failure
	Text     string // its text, if texts were asked for
}

// A Part is something of another package that stands in a scope.
type Part struct {
	Scope  int64 // in which
	Kind   string
	Name   string
	Places int // 0: it does not say
	Queued int
	Active int
	Runs   []ID // the tasks that run in it, as far as they are known
	State  string
}

// A Ring is tasks that wait for each other, so none of them can go on unless somebody cancels one, or
// a limit ends a wait. It is proved: all waits were seen twice, with nothing between, and lasted.
// Waits that the package does not know of, such as those for a channel, are never in one.
type Ring struct {
	Waits   []RingWait    // one way round; the last leads to the first
	Size    int           // how many tasks it has, if not all are on that way
	Breaks  time.Duration // until the first limit that is known ends one of the waits; 0: none is
	HoldsUp []ID          // tasks that wait for the ring, at most 32
	MoreUp  int           // how many more there are
}

// A RingWait is one wait of a ring.
type RingWait struct {
	By   ID
	How  Way
	On   ID
	Part int // that it leads through; 0: none
}

// A ProblemKind says what is wrong.
type ProblemKind string

// The kinds of problems, the worst first. Rings, worse than all of them, are in Tree.Rings.
const (
	ProblemStraggler ProblemKind = "straggler" // told to stop, and still there
	ProblemFull      ProblemKind = "full"      // all slots of a Limit are held, and tasks queue
	ProblemRestarts  ProblemKind = "restarts"  // a task has failed, and is started again
	ProblemUnclaimed ProblemKind = "unclaimed" // futures have failed, and nobody has been given that
)

// A Problem is something that a person would look at first. It may be none: that is for the person
// to say.
type Problem struct {
	Kind ProblemKind
	Node ID
	Text string // of a straggler: its stack, if stacks were asked for
}

// A Group is tasks that are alike, and for which there was no place in Nodes.
type Group struct {
	Owner ID     // in which task they were started
	Name  string // digits are written as #
	Kind  Kind
	State State
	Told  bool
	Count int
}

// Cut is what was left out.
type Cut struct {
	Grouped   int  // tasks that are in Groups only
	Unreached int  // members of scopes that the look did not come to, at least
	TimeUp    bool // the look was given up because it took too long
	Problems  int  // problems that are not listed
}
