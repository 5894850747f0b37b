package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is what observers are told. They are told by tree.TellStart, tree.TellEnd and tellPanic in failure.go.

// An Observer is told what happens in a scope; see [Observe]. It is called by
// the goroutines of the tasks, possibly several at once, with no lock held.
// A failure of an observer is an error of the scope.
type Observer interface {
	Observe(Event)
}

// ObserverFunc makes an Observer of a function.
type ObserverFunc func(Event)

// Observe calls f.
func (f ObserverFunc) Observe(e Event) { f(e) }

// EventKind says what happened.
type EventKind uint8

const (
	EventStart EventKind = iota // a handler is about to run
	EventEnd                    // a task is about to settle
	EventPanic                  // a handler has panicked
)

// String returns start, end or panic.
func (k EventKind) String() string {
	return [...]string{"start", "end", "panic"}[k]
}

// An Event is one thing that happened to a task.
type Event struct {
	Kind     EventKind
	Task     string
	Duration time.Duration // EventEnd: since the start
	Err      error         // EventEnd, EventPanic: how it ended
	Cause    error         // EventEnd: why its context was cancelled, if it was
}

func eventOf(e tree.Event) Event {
	return Event{Kind: EventKind(e.Kind), Task: e.Task, Duration: e.Took, Err: e.Err, Cause: e.Cause}
}
