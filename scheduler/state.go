package scheduler

// State is where a task stands.
type State uint32

// The states of a task. The last five are outcomes, of which a task has one,
// once.
const (
	Pending   State = iota // queued, or waiting for its time
	Running                // its function runs
	Done                   // its function has returned; what the zero Task is
	Cancelled              // it never ran, or not again if it is periodic
	Rejected               // it never ran: the pool refused, or the queue was full
	Panicked               // its function panicked
	Exited                 // its function called runtime.Goexit
)

// String returns the name of s in lower case.
func (s State) String() string {
	return [...]string{"pending", "running", "done", "cancelled", "rejected", "panicked", "exited"}[s]
}
