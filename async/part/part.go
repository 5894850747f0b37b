// Package part lets other packages show what is theirs in a picture of the live tree of package
// async: queues, workers and pools as parts of a scope, and what a call of theirs waits for.
//
// A package that has tasks wait shows two things. It notes a wait before it blocks, and takes that
// back afterwards:
//
//	var w part.Wait
//	w.Begin(ctx, queue, "the queue is empty")
//	defer w.End()
//
// And whatever lasts as long as a scope is a [Part] of that: see [Add]. [async.Dump] shows both.
// Nothing of it is done while nobody looks, but for a place on a list.
//
// The package is experimental: its names may change while the picture grows.
//
// [async.Dump]: https://pkg.go.dev/github.com/ambit-go/ambit/async#Dump
package part

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A Part is something of another package that stands beside the tasks of a scope.
//
// Look says how it stands. It is called by whoever looks, by any number of goroutines, with no lock
// of package async held. It must not block for long, or change anything.
type Part interface {
	Look() View
}

// A View is how a part stands at one moment.
type View struct {
	Kind    string // what it is, in a word: queue, worker, pool
	Name    string // what users call it
	Places  int    // how many pieces of work it does at a time; 0: it does not say
	Running int    // how many of them are under way
	Queued  int    // how many wait
	State   string // what else is to be said, in few words: closed, draining
}

// A Place is an executor of package async ([async.On]) that stands for a place in the queue of a
// part: the task that was given to it waits for its turn there, and then runs there until it has
// ended, with all that it has started. So a ring of waits is found that leads through the part.
//
// [async.On]: https://pkg.go.dev/github.com/ambit-go/ambit/async#On
type Place interface {
	Part() Part
}

// Add shows p with the scope of ctx until remove is called, or the scope has ended. Without a scope,
// and in one that has ended, it does nothing.
func Add(ctx context.Context, p Part) (remove func()) {
	if p == nil {
		panic("part: Add of a nil Part: leave the call out")
	}
	if scope := bridge.ScopeOf(ctx); scope != nil {
		if r := bridge.AtEnd(scope, shown{p}); r != nil {
			return func() { r.Remove() }
		}
	}
	return func() {}
}

// shown stands for a part that has nothing to do when its scope ends.
type shown struct{ p Part }

func (s shown) Part() Part { return s.p }

func (shown) ScopeEnds(bridge.Ending, error) {}

// A Wait is a wait of another package with the context of a task. The zero value is ready, and a
// Wait that has ended may be used again. One goroutine uses it at a time. It must not be copied
// while it is under way.
type Wait struct{ noted tree.Noted }

// Begin notes that the task of ctx is about to wait for what text says, of p, which may be nil. It
// allocates nothing, but for a task that has started and awaited nothing yet. A ctx without a task
// notes nothing. Users see text: it is to have no arguments, keys or payloads.
func (w *Wait) Begin(ctx context.Context, p Part, text string) {
	if t, _ := tree.Nearest(ctx); t != nil {
		w.noted.Begin(t, p, text)
	}
}

// End notes that the wait is over. Without a Begin before it does nothing.
func (w *Wait) End() { w.noted.End() }
