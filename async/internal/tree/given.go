package tree

import (
	"context"
	"slices"
	"time"
)

// This file is what observers give tasks: values of their own, and what they ask for besides. A task
// under other observers has nothing of it.

// A given is where the values of a task are looked up whose observers give some. Whether that task is
// cancelled is still the affair of the ctx that it was started with, which it stands around.
type given struct {
	context.Context
	added    AtomicPointer[context.Context] // what observers have made of Context; nil: nothing yet
	made     time.Duration                  // when the task was made, on our clock; 0: it has begun before
	queued   time.Duration                  // from then until its handler began
	returned time.Duration                  // when its handler has; 0: it has not
	ends     []Ends                         // of Begin
}

func newGiven(values context.Context) *given {
	if values == nil {
		values = context.Background()
	}
	return &given{Context: values, made: Clock()}
}

// Value looks key up in what observers have made of the context, but for the key with which package
// context asks what cancels it.
func (g *given) Value(key any) any {
	if added := g.added.Load(); added != nil && key != cancelCtxKey {
		return (*added).Value(key)
	}
	return g.Context.Value(key)
}

// givenTo returns what t has of observers, nil for nothing.
func givenTo(t *Task) *given {
	if t.More == nil || !t.More.differs {
		return nil
	}
	g, _ := t.More.Origin.values.(*given)
	return g
}

// HandlerReturned is called on the goroutine of t when its handler, or the body of its scope, has come to its end.
func HandlerReturned(t *Task) {
	g := givenTo(t)
	if g == nil || g.returned != 0 {
		return
	}
	g.returned = Clock()
	if len(g.ends) == 0 {
		return
	}
	stop := t.Stopped()
	for _, end := range slices.Backward(g.ends) { // each goes back to how the one before has left the goroutine
		if end.Returned != nil {
			end.Returned(stop)
		}
	}
}

// ended is called when t has come to its end, before observers are told.
func (g *given) ended(e *Event) {
	e.Queued = g.queued
	if g.returned != 0 {
		e.Joined = Clock() - g.returned
	}
	for _, end := range g.ends {
		if end.Ended != nil {
			end.Ended()
		}
	}
	g.ends = nil
}
