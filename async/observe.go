package async

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/async/picture"
)

// This file is what observers are told. They are told by given.go and observing.go of package tree.

// An Observer is told what happens in a scope; see [Observe]. It is called by
// the goroutines of the tasks, possibly several at once, with no lock held.
// Under a [Limit] the task keeps its slot meanwhile, so an observer must not wait
// for what queues there. A failure of an observer is an error of the scope.
//
// An Observer with a method
//
//	Kinds() []EventKind
//
// is told of those kinds, and of no others. Without one it is told of starts, ends and panics.
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

	// Only an observer that has a method Kinds is told of these. They cost a look at the clock or the stack.

	EventQueued  // a task was started; it may have to wait for a slot, an executor, or its goroutine
	EventSkipped // a task is about to settle whose handler was not called
	EventWaited  // a task has waited for at least a millisecond: for a future, for time to pass, or in another package
)

var kindNames = [...]string{"start", "end", "panic", "queued", "skipped", "waited"}

// String returns start, end, panic, queued, skipped or waited.
func (k EventKind) String() string { return kindNames[k] }

// An Event is one thing that happened to a task.
type Event struct {
	Kind     EventKind
	Of       picture.Kind    // what the task was made for
	Task     string          // its name
	Named    bool            // Name, or Detach, has given the name
	Daemon   bool            // as in a picture.Node: its owner does not wait for it; of a run: of its task
	ID       picture.ID      // tells it from others of its name, in a Snapshot, too
	Owner    picture.ID      // the task that it was started in; zero: none, it stands at the root
	Ctx      context.Context // its context, with the values of the ctx that it was started with
	On       context.Context // EventWaited: the Ctx of what it has waited for, if that is a future
	Queued   time.Duration   // EventStart, EventEnd, EventSkipped: how long it was on its way to its handler
	Duration time.Duration   // EventEnd: since the start; EventWaited: how long it has waited
	Joined   time.Duration   // EventEnd, to an observer with a method Enter: since the handler has returned
	Err      error           // EventEnd, EventSkipped, EventPanic: how it ended
	Cause    error           // EventEnd, EventSkipped: why its context was cancelled, if that was for nothing inside it
	Echo     bool            // EventEnd, EventSkipped: Err says only that it was told to stop, because of Cause
	PC       uintptr         // of the call that has started it, as of runtime.Callers; 0 if nobody asks for EventQueued
	Wait     *picture.Wait   // EventWaited: what it has waited for; its Part and Left are not set
}

func eventOf(e tree.Event) Event {
	out := Event{
		Kind: EventKind(e.Kind), Of: picture.Kind(e.Of.Kind.String()), Task: e.Task, Named: tree.IsNamed(e.Of),
		Daemon: isEndless(e.Of), ID: idOf(e.Of), Owner: idOf(e.Of.Owner.Task), Ctx: e.Of,
		Queued: e.Queued, Duration: e.Took, Joined: e.Joined, Err: e.Err, Cause: e.Cause, Echo: e.Echo, PC: e.PC,
	}
	if out.Kind == EventWaited {
		out.Wait = waitOf(&e)
	}
	if e.On != nil {
		out.On = e.On
	}
	return out
}

// isEndless reports whether nobody waits for t to end by itself.
func isEndless(t *tree.Task) bool {
	if t.Kind == tree.KindRun {
		t = t.Owner.Task
	}
	return t.IsDismissible()
}

// observerOf returns o as the tree calls it.
func observerOf(o Observer) *tree.Observer {
	to := &tree.Observer{Kinds: kindsOf(o), Tell: func(e tree.Event) { o.Observe(eventOf(e)) }}
	if reflect.TypeOf(o).Kind() == reflect.Pointer {
		to.Self = o
	}
	if giver, gives := o.(interface {
		Enter(ctx context.Context, e Event) context.Context
	}); gives {
		to.Enter = func(ctx context.Context, e tree.Event) context.Context { return giver.Enter(ctx, eventOf(e)) }
	}
	return to
}

func waitOf(e *tree.Event) *picture.Wait {
	switch {
	case e.On != nil:
		return &picture.Wait{How: picture.WayAwait, On: idOf(e.On), Name: e.On.Name()}
	case e.Text != "":
		w := &picture.Wait{How: picture.WayPart, Text: e.Text}
		if p, ok := e.Part.(part.Part); ok {
			v := p.Look()
			w.Name = strings.TrimSpace(v.Kind + " " + v.Name)
		}
		return w
	default:
		return &picture.Wait{How: picture.WaySleep}
	}
}

// kindsOf returns the kinds of events that o is told of.
func kindsOf(o Observer) (kinds tree.Kinds) {
	asks, ok := o.(interface{ Kinds() []EventKind })
	if !ok {
		return tree.UsualKinds
	}
	for _, kind := range asks.Kinds() {
		kinds = kinds.With(tree.EventKind(kind))
	}
	return kinds
}

func idOf(t *tree.Task) picture.ID {
	scope, ordinal := tree.NumbersOf(t)
	return picture.ID{Scope: scope, Ordinal: ordinal}
}
