package engine

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// counted is how many of the tasks that wait are due. The index does not tell numbers,
// so each of its entries is counted once, when Stats has come to its time, and what is
// written before that point afterwards is counted as it is written.
type counted [taskqueue.Priorities]struct {
	// mark is the entry, behind the prefix of its class, up to which all are counted.
	mark []byte
	n    map[taskqueue.State]int64 // as they are stored: StateScheduled or StateRetrying
}

func (c *counted) note(r *record, n int64) {
	rest := r.dueKey()[len(classKey(r.Queue, 0)):]
	c.noteEntry(classOf(r.Priority), rest, r.State, n)
}

func (c *counted) noteEntry(class int, rest []byte, s taskqueue.State, n int64) {
	if of := &c[class]; of.mark != nil && bytes.Compare(rest, of.mark) <= 0 {
		of.n[s] += n
	}
}

// count goes on from the mark of a class to now, over at most most entries, and
// returns how many are left of that.
func (c *counted) count(tx Tx, queue string, class int, now time.Time, most int) (left int) {
	of := &c[class]
	if of.mark == nil || fromMicros(of.mark).After(now) { // never, or the clock was put back
		of.mark, of.n = make([]byte, 8), map[taskqueue.State]int64{}
	}
	prefix := classKey(queue, class)
	from := append(slices.Concat(prefix, of.mark), 0)
	tx.Scan(from, func(k, v []byte) bool {
		if most == 0 || !bytes.HasPrefix(k, prefix) || fromMicros(k[len(prefix):]).After(now) {
			return false
		}
		most--
		of.mark = slices.Clone(k[len(prefix):])
		of.n[waiting(v)]++
		return true
	})
	return most
}

// Stats is a method of taskqueue.Store. Where many have become due since it was called
// last it takes several steps.
func (e *Engine) Stats(ctx context.Context, name string) (s taskqueue.Stats, err error) {
	for whole := false; !whole && err == nil; {
		err = e.do(ctx, name, func(tx Tx, q *queue, now time.Time) error {
			left := taskqueue.MaxBatch
			for class := 0; class < taskqueue.Priorities && left > 0; class++ {
				left = q.counted.count(tx, name, class, now, left)
			}
			if whole = left > 0; whole {
				s = q.stats(tx, now)
			}
			return nil
		})
	}
	return s, err
}

// stats returns the figures of q. All that is due is counted.
func (q *queue) stats(tx Tx, now time.Time) taskqueue.Stats {
	s := taskqueue.Stats{Queue: q.name, Settings: q.meta.Settings, States: maps.Clone(q.meta.States), Counts: maps.Clone(q.meta.Counts)}
	for class := range taskqueue.Priorities {
		for state, n := range q.counted[class].n {
			s.States[state] -= n
			s.States[taskqueue.StateReady] += n
		}
		scan(tx, classKey(q.name, class), func(rest, _ []byte) bool {
			s.Latest = max(s.Latest, now.Sub(fromMicros(rest)))
			return false
		})
	}
	return s
}
