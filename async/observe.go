package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
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
	Task     string          // its name
	ID       picture.ID      // tells it from others of its name, in a Snapshot, too
	Owner    picture.ID      // the task that it was started in; zero: none, it stands at the root
	Ctx      context.Context // its context, with the values of the ctx that it was started with
	Duration time.Duration   // EventEnd: since the start
	Err      error           // EventEnd, EventPanic: how it ended
	Cause    error           // EventEnd: why its context was cancelled, if it was
}

func eventOf(e tree.Event) Event {
	return Event{
		Kind: EventKind(e.Kind), Task: e.Task, ID: idOf(e.Of), Owner: idOf(e.Of.Owner.Task), Ctx: e.Of,
		Duration: e.Took, Err: e.Err, Cause: e.Cause,
	}
}

func idOf(t *tree.Task) picture.ID {
	scope, ordinal := tree.NumbersOf(t)
	return picture.ID{Scope: scope, Ordinal: ordinal}
}
