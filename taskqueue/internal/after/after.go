// Package after has what stores say of tasks that wait for others.
package after

import (
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
)

// Unknown says that a task cannot wait for one that is not there.
func Unknown(queue, id, parent string) error {
	return &taskqueue.InvalidError{What: "After", Why: fmt.Sprintf("task %q is to run after task %q, which queue %s does not know: add that before, in the same queue, and give it a Retention", id, parent, queue)}
}

// Refused says that a task cannot wait for one before it in the same call, since that was not added.
func Refused(id, parent, key, holder string) error {
	return fmt.Errorf("taskqueue: task %q is to run after task %q, which cannot be added: %w", id, parent, &taskqueue.DuplicateError{UniqueKey: key, Holder: holder})
}

// Skipped is why a task was cancelled: state is that of the other one, 0 if that was deleted.
func Skipped(parent string, state taskqueue.State) string {
	became := map[taskqueue.State]string{0: "was deleted", taskqueue.StateDead: "is dead", taskqueue.StateCancelled: "was cancelled"}[state]
	return fmt.Sprintf("task %q, after which it was to run, %s", parent, became)
}
