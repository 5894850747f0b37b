package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// Audit is the method of taskqueue.Auditor.
func (e *Engine) Audit(ctx context.Context, name string) (faults []string, err error) {
	err = e.do(ctx, name, func(tx Tx, q *queue, _ time.Time) error {
		a := audit{q: q, tx: tx, want: map[string]string{}, states: map[taskqueue.State]int64{}}
		a.records()
		a.indexes()
		a.sums()
		faults = a.faults
		return nil
	})
	return faults, err
}

// An audit compares what is stored with what the records say should be.
type audit struct {
	q      *queue
	tx     Tx
	want   map[string]string // keys of the indexes that there should be, and what they are of
	states map[taskqueue.State]int64
	faults []string
}

func (a *audit) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// records reads every record, and notes the entries that it should have.
func (a *audit) records() {
	scan(a.tx, key(keyTask, a.q.name), func(rest, _ []byte) bool {
		id := string(rest)
		r, err := load(a.tx, a.q.name, id)
		switch {
		case err != nil:
			a.fault("%v", err)
			return true
		case r.ID != id:
			a.fault("the record of task %s is that of task %s", id, r.ID)
			return true
		case r.Token > a.q.meta.LastToken:
			a.fault("task %s has token %d, the last that was given is %d", id, r.Token, a.q.meta.LastToken)
		}
		a.states[r.State]++
		entry := func(k []byte, what string) { a.want[string(k)] = what + " of task " + id }
		switch {
		case r.waits():
			entry(r.dueKey(), "the due time")
			if r.State == taskqueue.StateRetrying {
				entry(r.retryKey(), "the due time of the retry")
			}
		case r.State == taskqueue.StateRunning:
			entry(runningKey(r.Queue, id), "the run")
			if l := a.q.byID[id]; l == nil || l.token != r.Token {
				a.fault("task %s runs without a lease", id)
			}
		case r.State.Ended():
			entry(r.endedKey(), "the end")
			if r.State != taskqueue.StateDead {
				entry(r.forgetKey(), "the time to be forgotten")
			}
		default:
			a.fault("task %s is stored as %v", id, r.State)
		}
		if r.HoldsKey {
			k := uniqueKey(r.Queue, r.UniqueKey)
			entry(k, "the unique key")
			if holder := string(a.tx.Get(k)); holder != id {
				a.fault("task %s should hold the unique key %q, which task %q holds", id, r.UniqueKey, holder)
			}
			if r.State.Ended() {
				a.fault("task %s holds the unique key %q though it has ended", id, r.UniqueKey)
			}
		}
		return true
	})
}

// indexes looks for entries that are missing or left over.
func (a *audit) indexes() {
	for _, kind := range []byte{keyDue, keyRetry, keyRunning, keyEnded, keyForget, keyUnique} {
		prefix := key(kind, a.q.name)
		scan(a.tx, prefix, func(rest, _ []byte) bool {
			k := string(prefix) + string(rest)
			if _, wanted := a.want[k]; !wanted {
				a.fault("an entry %q is left over", k)
			}
			delete(a.want, k)
			return true
		})
	}
	for _, what := range a.want {
		a.fault("%s is missing", what)
	}
}

// sums compares the counts.
func (a *audit) sums() {
	for s := taskqueue.StateScheduled; s <= taskqueue.StateCancelled; s++ {
		if got, want := a.q.meta.States[s], a.states[s]; got != want {
			a.fault("%d tasks are counted as %v, and %d are", got, s, want)
		}
	}
	if n := len(a.q.leases); int64(n) != a.states[taskqueue.StateRunning] {
		a.fault("there are %d leases for %d running tasks", n, a.states[taskqueue.StateRunning])
	}
}
