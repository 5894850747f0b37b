package engine

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// An orphan is an entry of an index whose record is missing or cannot be read. Nothing
// here writes the one without the other: somebody else has, or the disk.

// orphan makes a dead letter of an entry of the index of a state. why is the error of
// reading its record; nil: there is none.
func (q *queue) orphan(tx Tx, now time.Time, entry []byte, id string, s taskqueue.State, why error) {
	r := &record{Info: taskqueue.Info{Task: taskqueue.Task{ID: id, Queue: q.name}, LastError: "the store had lost its record"}}
	if why != nil {
		r.LastError = why.Error()
	}
	q.dropEntry(tx, entry, s)
	q.giveBack(id)
	q.bury(r, now)
	q.insert(tx, r)
}

// dropEntry deletes an entry of the index of a state, and what is left of its record.
func (q *queue) dropEntry(tx Tx, entry []byte, s taskqueue.State) {
	tx.Delete(entry)
	tx.Delete(taskKey(q.name, idOf(q.name, entry)))
	if entry[0] == keyDue {
		rest := entry[len(classKey(q.name, 0)):]
		tx.Delete(append(key(keyRetry, q.name), rest...))
		q.counted.noteEntry(int(entry[len(key(keyDue, q.name))]), rest, s, -1)
	}
	q.meta.States[s]--
	q.dirty = true
}

// waiting is the state of an entry of keyDue.
func waiting(value []byte) taskqueue.State {
	if len(value) > 0 {
		return taskqueue.StateRetrying
	}
	return taskqueue.StateScheduled
}
