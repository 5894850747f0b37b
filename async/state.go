package async

// This file is where the task of a future stands, as users see it.

// State is where a future's task stands.
type State uint8

// The states of a future.
const (
	StateQueued   State = iota // waits for a slot of a Limit
	StateRunning               // the handler, or what it started, runs or is about to
	StateAborting              // as StateRunning, and it has been told to stop
	StateDone                  // settled
)

// The former names of the states of a future.
//
// Deprecated: Use those that begin with State.
const (
	//go:fix inline
	Queued = StateQueued
	//go:fix inline
	Running = StateRunning
	//go:fix inline
	Aborting = StateAborting
	//go:fix inline
	Done = StateDone
)

// String returns queued, running, aborting or done.
func (s State) String() string {
	return [...]string{"queued", "running", "aborting", "done"}[s]
}
