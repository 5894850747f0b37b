package taskqueue

import (
	"fmt"
	"runtime/debug"
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
	Took  time.Duration // of a run, so far or in all
	Late  time.Duration // of a start: how long after its time
	N     int           // of EventTrimmed: how many
}

// An EventKind says what has happened.
type EventKind string

// Each run has one EventStarted, and then one of those up to EventLost, when the store
// has been told. A task that has no handler, or was claimed too late, has the latter alone.
const (
	EventStarted   EventKind = "started"
	EventDone      EventKind = "done"
	EventFailed    EventKind = "failed"
	EventReleased  EventKind = "released"  // given back, no attempt spent
	EventUnknown   EventKind = "unknown"   // given back, because there is no handler for its type
	EventCancelled EventKind = "cancelled" // Cancel was asked for, and it has not ended well
	// EventLost: its lease was lost, or the store could not be told how it has ended. It
	// runs again.
	EventLost EventKind = "lost"

	// EventStuck: a run lasts for ten times as long as 99 of 100 of its type, or for
	// StuckAfter. Told once, Took is how long it has lasted; it goes on, and its lease is
	// extended. A Timeout, or Cancel, stops it.
	EventStuck EventKind = "stuck"

	// EventDead: a task has become a dead letter, by the run of which EventFailed was
	// told before; or, without a Type, because its leases have run out once too often,
	// it has expired, or the store had lost its record.
	EventDead     EventKind = "dead"
	EventTrimmed  EventKind = "trimmed"  // N dead letters were deleted by MaxDead or DeadRetention
	EventStore    EventKind = "store"    // a call of the store has failed
	EventSchedule EventKind = "schedule" // a periodic job runs on another schedule, which is as new or newer
)

// Observe has f told of what happens in the workers of this process. It is called by
// many goroutines at the same time, with no lock held, and must not block: Work returns
// when all calls of it have. A panic of f stops the worker as the end of its
// ctx does, and goes on in [Queue.Work] when all is settled. Nil panics.
func Observe(f func(Event)) Option {
	if f == nil {
		panic("taskqueue: Observe(nil): leave the option out instead")
	}
	return func(o *options) { o.observe = f }
}

func (w *worker) tell(e Event) {
	if w.q.opts.observe != nil {
		e.At = clock.Now()
		w.guard("the observer", func() { w.q.opts.observe(e) })
	}
}

// tellClaimed tells what a claim has done beside claiming.
func (w *worker) tellClaimed(queue string, got *Claimed) {
	for _, id := range got.Dead {
		w.tell(Event{Kind: EventDead, Queue: queue, ID: id})
	}
	if got.Trimmed > 0 {
		w.tell(Event{Kind: EventTrimmed, Queue: queue, N: got.Trimmed})
	}
}

// guard calls what the user has given, but for handlers. A panic of it stops the
// worker, and goes on in Work when all is settled.
func (w *worker) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			w.fail(&broken{what, p, debug.Stack()})
		}
	}()
	f()
}

// A broken is a panic that Work goes on with.
type broken struct {
	what  string
	value any
	stack []byte
}

func (b *broken) Error() string {
	return fmt.Sprintf("taskqueue: %s of a worker has panicked: %v\n\n%s", b.what, b.value, b.stack)
}

// Unwrap returns what it has panicked with, if that is an error.
func (b *broken) Unwrap() error {
	err, _ := b.value.(error)
	return err
}
