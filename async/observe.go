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
	// EventSkip and EventWait are told to observers with a method Enter only, see [Observe].
	EventSkip // a task was cancelled before it ran
	EventWait // a task has waited, for 1 ms or longer, for a future that is no part of it
)

// String returns start, end, panic, skip or wait.
func (k EventKind) String() string {
	return [...]string{"start", "end", "panic", "skip", "wait"}[k]
}

// An Event is one thing that happened to a task.
type Event struct {
	Kind     EventKind
	Of       picture.Kind    // what the task was made for
	Task     string          // its name
	Named    bool            // Name, or Detach, has given the name
	Daemon   bool            // as in a picture.Node: its owner does not wait for it to end by itself
	ID       picture.ID      // tells it from others of its name, in a Snapshot, too
	Owner    picture.ID      // the task that it was started in; zero: none, it stands at the root
	Ctx      context.Context // its context, with the values of the ctx that it was started with
	On       context.Context // EventWait: the context of what it has waited for
	Duration time.Duration   // EventEnd: since the start; EventWait: of the wait
	Err      error           // EventEnd, EventPanic, EventSkip: how it ended
	Cause    error           // EventEnd, EventSkip: why its context was cancelled, if it was
	Echo     bool            // EventEnd: Err says only that something has told it to stop, because of Cause

	// EventEnd, to an observer with a method Enter: how long the handler had not begun after the task was
	// started, and how long ago it has returned, while what it has started went on.
	Queued, Joined time.Duration
}

func eventOf(e tree.Event) Event {
	out := Event{
		Kind: EventKind(e.Kind), Of: picture.Kind(e.Of.Kind.String()), Task: e.Task, Named: tree.IsNamed(e.Of),
		Daemon: e.Of.IsDismissible(), ID: idOf(e.Of), Owner: idOf(e.Of.Owner.Task), Ctx: e.Of,
		Duration: e.Took, Err: e.Err, Cause: e.Cause, Echo: e.Echo, Queued: e.Queued, Joined: e.Joined,
	}
	if e.On != nil {
		out.On = e.On
	}
	return out
}

// observerOf returns o as the tree calls it.
func observerOf(o Observer) *tree.Observer {
	to := &tree.Observer{Tell: func(e tree.Event) { o.Observe(eventOf(e)) }}
	if giver, gives := o.(interface {
		Enter(ctx context.Context, e Event) context.Context
	}); gives {
		to.Enter = func(ctx context.Context, e tree.Event) context.Context { return giver.Enter(ctx, eventOf(e)) }
	}
	return to
}

func idOf(t *tree.Task) picture.ID {
	scope, ordinal := tree.NumbersOf(t)
	return picture.ID{Scope: scope, Ordinal: ordinal}
}
