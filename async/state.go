package async

import "fmt"

// This file is where a task stands: the states it goes through, and what of
// them users see.

// The states of a task. It moves down this list only, and may skip.
const (
	// stateQueued: started, but the handler has not begun: it waits for a slot
	// of a Limit or has just been given its goroutine. Only tasks that have more
	// are ever seen in it.
	stateQueued int32 = iota - 1
	// stateRunning: the handler runs. Only now may the abort hook be called. It
	// is the zero value because most tasks are in it from the first.
	stateRunning
	// stateJoining: the handler has returned; what it started goes on.
	stateJoining
	// stateDone: settled.
	stateDone
)

// State is where a future's task stands.
type State uint8

// The states of a future.
const (
	Queued   State = iota // waits for a slot of a Limit
	Running               // the handler, or what it started, runs or is about to
	Aborting              // as Running, and it has been told to stop
	Done                  // settled
)

// String returns queued, running, aborting or done.
func (s State) String() string {
	return [...]string{"queued", "running", "aborting", "done"}[s]
}

// move changes t's state; moving up the list is a bug of this package.
func (t *task) move(to int32) {
	if from := t.state.Swap(to); from >= to {
		panic(fmt.Sprintf("async: illegal transition of %s: %d -> %d", t.name(), from, to))
	}
}

// public returns t's state as users see it.
func (t *task) public() State {
	sg := t.stopped()
	switch st := t.state.Load(); {
	case st == stateDone:
		return Done
	case sg != nil && sg != endedSignal:
		return Aborting
	case st == stateQueued:
		return Queued
	default:
		return Running
	}
}
