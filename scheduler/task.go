package scheduler

// A Task is a handle to what was scheduled. It is comparable and never
// forgets: it tells the outcome for as long as it is held, and holds nothing
// that the task's function has captured. The zero Task has ended.
type Task struct{ n *node }

// Cancel takes t out of the queue, and returns true: it never starts.
//
//	if !task.Cancel() {
//		// it runs, with a context that is cancelled, or has ended
//	}
//
// # Details
//
// If t runs its context is cancelled with [ErrCancelled] and Cancel returns false; the
// worker's next task still waits until it has returned. A periodic task is not run again
// either way. For a task that has ended Cancel returns false. Cancel does not block.
func (t Task) Cancel() bool {
	return t.n != nil && t.n.q.owner.cancel(t.n, ErrCancelled)
}

// State returns where t stands.
func (t Task) State() State {
	if t.n == nil {
		return Done
	}
	return t.n.status()
}
