package kvqueue

import (
	"runtime/debug"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
)

// An EventKind says what has happened.
type EventKind uint8

const (
	// Enqueued says that this handle has added items.
	Enqueued EventKind = iota
	// Claimed says that this handle has claimed items.
	Claimed
	// Acked says that an item is gone.
	Acked
	// Failed says that an item goes back after a failure.
	Failed
	// Returned says that an item went back without one.
	Returned
	// Died says that an item became a dead letter.
	Died
	// Reaped says that this handle gave back items of a process that went away.
	Reaped
	// Lost says that claims of this handle were lost.
	Lost
	// StoreFailed says that nothing can be claimed because of the store: see [Queue.Trouble].
	// It is told once, when that begins.
	StoreFailed
	// StoreBack says that the store answers again.
	StoreBack
	// Overruled says that the handle was opened with other options than the queue has, which stay:
	// see [Queue.Configure].
	Overruled
	// Overdue says that a run has reached the [TimeLimit]: its context is cancelled, and its items are claimed until it
	// has returned. Failed or Died, which follows then, may be told before. Without it the handler goes on, and nobody
	// else is given the items.
	Overdue
)

// String returns a word for it.
func (k EventKind) String() string {
	return [...]string{"enqueued", "claimed", "acked", "failed", "returned", "died", "reaped", "lost",
		"store failed", "store back", "overruled", "overdue"}[k]
}

// A Report is what an observer is told.
type Report struct {
	Kind  EventKind
	Items int    // how many; of StoreFailed, StoreBack and Overruled 1
	Why   string // of a failure
}

// counts are those of one handle.
type counts struct {
	kinds     [Overdue + 1]atomic.Int64
	conflicts atomic.Int64
}

// tell counts what has happened, and tells the observer.
func (q *Queue) tell(r Report) {
	q.counts.kinds[r.Kind].Add(int64(r.Items))
	if q.set.observe != nil {
		if r.Kind != StoreFailed { // whatever else is told, the store has answered
			defer q.trouble.observes()()
		}
		q.guard("Observe", func() { q.set.observe(r) })
	}
}

// guard calls a function that was given as an option. A panic of it does no harm to the
// queue: the first one is kept for Close and Consume to return.
func (q *Queue) guard(option string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			q.broken.CompareAndSwap(nil, &async.PanicError{Value: p, Stack: debug.Stack(), Task: "the function of kvqueue." + option})
		}
	}()
	f()
}

// brokenBy returns the first panic of a function that was given as an option; nil: there was
// none.
func (q *Queue) brokenBy() error {
	if p := q.broken.Load(); p != nil {
		return p
	}
	return nil
}

func (l *session) reportOf(s settlement) Report {
	switch {
	case s.verdict == done:
		return Report{Acked, 1, ""}
	case s.dies():
		return Report{Died, 1, s.why}
	case s.verdict == failed:
		return Report{Failed, 1, s.why}
	default:
		return Report{Returned, 1, ""}
	}
}
