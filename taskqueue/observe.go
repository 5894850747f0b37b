package taskqueue

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// An Event is something that happened to a task in this process.
type Event struct {
	At    time.Time
	Kind  EventKind
	Queue string
	ID    string
	Type  string
	Err   error
	Took  time.Duration // of a run
	Late  time.Duration // of a start: how long after its time
}

// An EventKind says what has happened.
type EventKind string

const (
	EventStarted   EventKind = "started"
	EventDone      EventKind = "done"
	EventFailed    EventKind = "failed"
	EventReleased  EventKind = "released" // given back, no attempt spent
	EventUnknown   EventKind = "unknown"  // given back, because there is no handler for its type
	EventLost      EventKind = "lost"     // its lease was lost while it ran
	EventCancelled EventKind = "cancelled"
	EventStore     EventKind = "store"    // the store could not be reached
	EventSchedule  EventKind = "schedule" // a periodic job is known with another schedule
)

// Observe has f told of what happens. It is called by many goroutines, with no lock
// held, and must not block.
func Observe(f func(Event)) Option {
	if f == nil {
		panic("taskqueue: Observe(nil): leave the option out instead")
	}
	return func(o *options) { o.observe = f }
}

func (q *Queue) tell(e Event) {
	if q.opts.observe != nil {
		e.At = clock.Now()
		q.opts.observe(e)
	}
}
