package taskqueue

import "slices"

// MaxAfter is how many tasks one task waits for at most. Those of one step wait for MaxBatch
// in all.
const MaxAfter = 100

// An OnFailed says what is to become of a task when one that it waits for ends as a dead letter
// or cancelled, or is deleted before it has ended.
type OnFailed string

// The zero value is OnFailedSkip.
const (
	// OnFailedSkip has the task cancelled, and with it those that wait for it. Its LastError names
	// the other one. It is forgotten after its Retention, a minute if that is less, and cannot be
	// retried then; a Retry of the other one does not bring it back.
	OnFailedSkip OnFailed = "skip"
	// OnFailedRun has the task go on as if the other one were done.
	OnFailedRun OnFailed = "run"
	// OnFailedWait has the task wait until a task of that ID is done: the other one may be
	// retried, or deleted and added again.
	OnFailedWait OnFailed = "wait"
)

// checkAfter says what is wrong with the tasks that t is to run after.
func checkAfter(t *Task) error {
	switch {
	case len(t.After) > MaxAfter:
		return invalid("After", "it names %d tasks, at most %d are allowed: put a task in between that waits for some of them", len(t.After), MaxAfter)
	case t.OnFailed != "" && !slices.Contains([]OnFailed{OnFailedSkip, OnFailedRun, OnFailedWait}, t.OnFailed):
		return invalid("OnFailed", "there is no %q: use one of skip, run, wait", string(t.OnFailed))
	case t.OnFailed != "" && len(t.After) == 0:
		return invalid("OnFailed", "it is set and After is not: set After, or leave it out")
	}
	for i, id := range t.After {
		switch err := CheckName("After", id); {
		case err != nil:
			return err
		case id == t.ID:
			return invalid("After", "it names the task itself: leave that out")
		case slices.Contains(t.After[:i], id):
			return invalid("After", "it names task %q twice: leave one out", id)
		}
	}
	return nil
}

// afterSize is what the names of the tasks that t waits for count for MaxBatchBytes.
func afterSize(t *Task) (n int) {
	for _, id := range t.After {
		n += len(id)
	}
	return n
}
