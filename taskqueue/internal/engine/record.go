package engine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A record is a task as it is stored. While it waits, State is StateScheduled, or
// StateRetrying after a failure; whether its time has come is decided by looking.
type record struct {
	taskqueue.Info
	// SettledToken is the token whose outcome was taken over last: the same outcome
	// again is answered, and not taken over twice.
	SettledToken int64 `json:"settled,omitempty"`
	// HoldsKey: it is the holder of its unique key.
	HoldsKey bool `json:"holds,omitempty"`
	// Reaped: its lease has run out, and it was not claimed since.
	Reaped bool `json:"reaped,omitempty"`
	// Lasts: it does not expire any more. It has snoozed, or somebody has asked for it
	// to run again.
	Lasts bool `json:"lasts,omitempty"`
}

func (r *record) waits() bool {
	return r.State == taskqueue.StateScheduled || r.State == taskqueue.StateRetrying
}

// info returns r as others see it at now.
func (r *record) info(now time.Time) taskqueue.Info {
	i := r.Info
	if r.waits() && !i.DueAt.After(now) {
		i.State = taskqueue.StateReady
	}
	return i
}

func taskKey(queue, id string) []byte    { return append(key(keyTask, queue), id...) }
func runningKey(queue, id string) []byte { return append(key(keyRunning, queue), id...) }
func uniqueKey(queue, k string) []byte   { return append(key(keyUnique, queue), k...) }

func classKey(queue string, class int) []byte { return append(key(keyDue, queue), byte(class)) }

// classOf returns where tasks of a priority stand in the order: the most urgent at 0.
func classOf(priority uint8) int { return taskqueue.Priorities - 1 - int(priority) }

func (r *record) dueKey() []byte {
	return append(withTime(classKey(r.Queue, classOf(r.Priority)), r.DueAt), r.ID...)
}

func (r *record) retryKey() []byte {
	return append(withTime(key(keyRetry, r.Queue), r.DueAt), r.ID...)
}

func endedPrefix(queue string, s taskqueue.State) []byte {
	return append(key(keyEnded, queue), byte(s))
}

func (r *record) endedKey() []byte {
	return append(withTime(endedPrefix(r.Queue, r.State), r.EndedAt), r.ID...)
}

func (r *record) forgetKey() []byte {
	keep := max(r.Retention, taskqueue.MinRetention)
	return append(withTime(key(keyForget, r.Queue), r.EndedAt.Add(keep)), r.ID...)
}

// load returns the record of a task; nil if there is none.
func load(tx Tx, queue, id string) (*record, error) {
	b := tx.Get(taskKey(queue, id))
	if b == nil {
		return nil, nil
	}
	r := new(record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("taskqueue: the record of task %q in queue %q cannot be read: %w", id, queue, err)
	}
	return r, nil
}

// insert writes r and what finds it: each record has one entry in the index of its
// state, and its unique key if it holds that.
func (q *queue) insert(tx Tx, r *record) {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has no field that cannot be written
	}
	tx.Put(taskKey(r.Queue, r.ID), b)
	switch {
	case r.waits():
		var retry []byte
		if r.State == taskqueue.StateRetrying {
			retry = []byte{1}
			tx.Put(r.retryKey(), nil)
		}
		q.sooner = q.sooner || q.first(tx, r)
		tx.Put(r.dueKey(), retry)
		q.counted.note(r, 1)
	case r.State == taskqueue.StateRunning:
		tx.Put(runningKey(r.Queue, r.ID), nil)
	default:
		tx.Put(r.endedKey(), nil)
		if r.State != taskqueue.StateDead {
			tx.Put(r.forgetKey(), nil)
		}
	}
	if r.HoldsKey {
		tx.Put(uniqueKey(r.Queue, r.UniqueKey), []byte(r.ID))
	}
	q.meta.States[r.State]++
	q.dirty = true
}

// first reports whether r will be due before all that waits in its class.
func (q *queue) first(tx Tx, r *record) bool {
	first := true
	scan(tx, classKey(r.Queue, classOf(r.Priority)), func(rest, _ []byte) bool {
		first = micros(r.DueAt) < binary.BigEndian.Uint64(rest)
		return false
	})
	return first
}

// remove is the inverse of insert.
func (q *queue) remove(tx Tx, r *record) {
	tx.Delete(taskKey(r.Queue, r.ID))
	switch {
	case r.waits():
		tx.Delete(r.dueKey())
		if r.State == taskqueue.StateRetrying {
			tx.Delete(r.retryKey())
		}
		q.counted.note(r, -1)
	case r.State == taskqueue.StateRunning:
		tx.Delete(runningKey(r.Queue, r.ID))
	default:
		tx.Delete(r.endedKey())
		if r.State != taskqueue.StateDead {
			tx.Delete(r.forgetKey())
		}
	}
	if r.HoldsKey {
		tx.Delete(uniqueKey(r.Queue, r.UniqueKey))
	}
	q.meta.States[r.State]--
	q.dirty = true
}

// change moves r to another state: f changes it.
func (q *queue) change(tx Tx, r *record, f func(*record)) {
	q.remove(tx, r)
	f(r)
	q.insert(tx, r)
}
