package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A span is a part of an index: the keys from low on that are less than high.
type span struct{ low, high []byte }

// whole is the span of all keys that begin with prefix.
func whole(prefix []byte) span {
	high := slices.Clone(prefix)
	high[len(high)-1]++ // the last byte is a zero, a class or a state
	return span{prefix, high}
}

// spans are where the tasks in a state are, in their order. Of StateScheduled there are
// retries in them, too.
func spans(queue string, s taskqueue.State, now time.Time) (all []span) {
	later := stored(now).Add(time.Microsecond) // the first time that has not come
	switch {
	case s == taskqueue.StateRunning:
		return []span{whole(key(keyRunning, queue))}
	case s == taskqueue.StateRetrying:
		of := whole(key(keyRetry, queue))
		of.low = withTime(slices.Clone(of.low), later)
		return []span{of}
	case s.Ended():
		return []span{whole(endedPrefix(queue, s))}
	}
	for class := range taskqueue.Priorities {
		of := whole(classKey(queue, class))
		border := withTime(slices.Clone(of.low), later)
		if s == taskqueue.StateReady {
			of.high = border
		} else {
			of.low = border
		}
		all = append(all, of)
	}
	return all
}

// walk calls f with the entries of spans behind the key after, in their order or in the
// inverse order, until it returns false. No after: from the first.
func walk(tx Tx, all []span, after []byte, reverse bool, f func(k, v []byte) bool) {
	if reverse {
		slices.Reverse(all)
	}
	goesOn := true
	for _, s := range all {
		switch {
		case !goesOn:
			return
		case len(after) > 0 && reverse:
			s.high = slices.MinFunc([][]byte{s.high, after}, bytes.Compare)
		case len(after) > 0:
			s.low = slices.MaxFunc([][]byte{s.low, append(slices.Clone(after), 0)}, bytes.Compare)
		}
		within := func(k, v []byte) bool {
			if bytes.Compare(k, s.low) < 0 || bytes.Compare(k, s.high) >= 0 {
				return false
			}
			goesOn = f(k, v)
			return goesOn
		}
		if reverse {
			tx.ScanBack(s.high, within)
		} else {
			tx.Scan(s.low, within)
		}
	}
}

// idOf returns the id that a key of an index ends with.
func idOf(queue string, k []byte) string {
	at := len(key(k[0], queue))
	switch k[0] {
	case keyDue, keyEnded:
		at += 9
	case keyRetry:
		at += 8
	}
	return string(k[at:])
}

func cursor(text string) ([]byte, error) {
	after, err := hex.DecodeString(text)
	if err != nil {
		err = &taskqueue.InvalidError{What: "cursor", Why: "it is not one that was returned for this state and order"}
	}
	return after, err
}

// List is a method of taskqueue.Store.
func (e *Engine) List(ctx context.Context, name string, req taskqueue.ListRequest) (page taskqueue.Page, err error) {
	after, err := cursor(req.Cursor)
	if err != nil {
		return page, err
	}
	most := min(max(req.Max, 0), taskqueue.MaxBatch)
	if most == 0 {
		most = 100
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		var last []byte
		seen, bytes := 0, 0
		walk(tx, spans(name, req.State, now), after, req.Reverse, func(k, _ []byte) bool {
			if seen == taskqueue.MaxBatch || len(page.Tasks) == most || bytes >= taskqueue.MaxBatchBytes {
				page.Cursor = hex.EncodeToString(last)
				return false
			}
			seen++
			last = slices.Clone(k)
			// The next claim makes a dead letter of an orphan.
			if r, _ := load(tx, name, idOf(name, k)); r != nil {
				if i := q.look(r, now); i.State == req.State {
					page.Tasks = append(page.Tasks, i)
					bytes += size(&i)
				}
			}
			return true
		})
		return nil
	})
	return page, err
}

// Purge is a method of taskqueue.Store.
func (e *Engine) Purge(ctx context.Context, name string, s taskqueue.State, from string) (n int, next string, err error) {
	if s == taskqueue.StateRunning {
		return 0, "", &taskqueue.InvalidError{What: "state", Why: "running tasks cannot be deleted: cancel them first"}
	}
	after, err := cursor(from)
	if err != nil {
		return 0, "", err
	}
	err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
		var entries [][]byte
		var states []taskqueue.State
		seen := 0
		walk(tx, spans(name, s, now), after, false, func(k, v []byte) bool {
			if seen == taskqueue.MaxBatch {
				next = hex.EncodeToString(entries[len(entries)-1])
				return false
			}
			seen++
			entries, states = append(entries, slices.Clone(k)), append(states, stateAt(k, v))
			return true
		})
		n, next = q.purge(tx, s, entries, states, next)
		return nil
	})
	return n, next, err
}

// stateAt is the state that an entry of an index is of, as it is stored.
func stateAt(k, v []byte) taskqueue.State {
	switch k[0] {
	case keyDue:
		return waiting(v)
	case keyRetry:
		return taskqueue.StateRetrying
	}
	return 0
}

// purge deletes tasks by their entries in the index of s, as many as their sizes allow.
// next is the cursor behind all of them.
func (q *queue) purge(tx Tx, s taskqueue.State, entries [][]byte, states []taskqueue.State, next string) (n int, _ string) {
	bytes := 0
	for i, k := range entries {
		if s == taskqueue.StateScheduled && states[i] != s {
			continue
		}
		r, _ := load(tx, q.name, idOf(q.name, k))
		switch {
		case r != nil:
			bytes += size(&r.Info)
			q.remove(tx, r)
			n++
		case s.Ended():
			q.dropEntry(tx, k, s)
			n++
		}
		if bytes >= taskqueue.MaxBatchBytes && i+1 < len(entries) {
			return n, hex.EncodeToString(k)
		}
	}
	return n, next
}
