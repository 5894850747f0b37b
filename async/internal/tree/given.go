package tree

import (
	"context"
	"errors"
	"slices"
	"time"
)

// This file tells observers of starts and ends, and is what they give tasks: values of their own, and what
// they ask for besides. A task under other observers has nothing of that.

// TellStart tells the observers that t starts.
func TellStart(t *Task) {
	if untold(t) {
		return
	}
	seen := t.More.seen
	if seen.began.Load() != 0 {
		seen.queued = 0 // the first item of t has queued
	}
	seen.began.Store(int64(Clock()))
	e := seen.event(eventStart, t)
	if g := givenTo(t); g != nil {
		enter(t, g, e)
	} else {
		TellObservers(t.Owner, e)
	}
}

// EndEvent returns what observers are told of the end of t.
func EndEvent(t *Task, v *Verdict, stop *StopError) Event {
	e := t.More.seen.event(eventEnd, t)
	e.Took, e.Err, e.Echo = Clock()-time.Duration(t.More.seen.began.Load()), v.Err, v.Echo
	if stop != nil && !failedInside(t, stop) {
		e.Cause = stop.Cause
	}
	if g := givenTo(t); g != nil {
		e.Joined = g.ended()
	}
	return e
}

// failedInside reports whether stop, for which t was cancelled, is its own failure, or one of what it has
// started. Such a failure says no more than how t has ended.
func failedInside(t *Task, stop *StopError) bool {
	h := t.Inner.Load()
	if h == nil || h.isShared() {
		return false
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Tally.FromInside(stop.Cause)
}

// A given is where the values of a task are looked up whose observers give some. Whether that task is
// cancelled is still the affair of the ctx that it was started with, which it stands around.
type given struct {
	context.Context
	added    AtomicPointer[context.Context] // what observers have made of Context; nil: nothing yet
	returned time.Duration                  // when its handler has; 0: it has not
	ends     []Ends                         // of Begin
}

func newGiven(values context.Context) *given {
	if values == nil {
		values = context.Background()
	}
	return &given{Context: values}
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

// ended is called when the task has come to its end, before observers are told. It returns how long ago its
// handler has returned.
func (g *given) ended() (joined time.Duration) {
	for _, end := range g.ends {
		if end.Ended != nil {
			end.Ended()
		}
	}
	g.ends = nil
	if g.returned == 0 {
		return 0
	}
	return Clock() - g.returned
}

// enter has the observers of t give it their values, as g, and tells them of the start e.
func enter(t *Task, g *given, e Event) {
	g.added.Store(nil) // of an item before
	g.returned, g.ends = 0, nil
	ctx := context.WithoutCancel(g.Context)
	for o := t.Owner.Observers; o != nil; o = o.outer {
		if o.Enter != nil {
			o.guard(t.Owner, func() error {
				added := o.Enter(ctx, e)
				if added == nil || added.Done() != nil {
					return errEnter
				}
				ctx = added
				g.added.Store(&added)
				return nil
			})
		}
		o.tell(t.Owner, e)
	}
	for o := t.Owner.Observers; o != nil && t.Kind != KindGroup; o = o.outer { // nothing runs in a group
		if o.Begin != nil {
			added, ends := o.Begin(ctx, g.Context, e)
			ctx, g.ends = added, append(g.ends, ends)
			g.added.Store(&added)
		}
	}
}

// errEnter is the error of a scope whose observer has returned another context than it should.
var errEnter = errors.New(
	"async: Enter of an observer: return the ctx that it was given, or one that adds values to it")
