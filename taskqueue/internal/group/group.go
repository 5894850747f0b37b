// Package group has callers that come at the same time served together, without a
// timer: while one group is served the next gathers, and is served when the one
// before is done. The first of its callers serves it.
package group

import (
	"errors"
	"sync"
)

// errPanicked is the error of those whose items were served by a call that has
// panicked, on the goroutine of another.
var errPanicked = errors.New("taskqueue: the call that served this together with others has panicked")

// A Group serves items of callers together. The zero value is not ready: use New.
type Group[T any] struct {
	serve func(items []T) error
	most  int

	mu      sync.Mutex
	changed sync.Cond
	next    *round[T] // gathers; nil if nobody waits
	serving bool
}

type round[T any] struct {
	items []T
	done  bool
	err   error
}

// New returns a group that calls serve with at most most items, never twice at the
// same time.
func New[T any](most int, serve func(items []T) error) *Group[T] {
	g := &Group[T]{serve: serve, most: most}
	g.changed.L = &g.mu
	return g
}

// Do has item served and returns when it was, with the error of the call that
// served it. Items of one goroutine are served in the order of its calls.
func (g *Group[T]) Do(item T) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.next != nil && len(g.next.items) >= g.most {
		g.changed.Wait()
	}
	if g.next == nil {
		g.next = new(round[T])
	}
	r := g.next
	r.items = append(r.items, item)
	for !r.done {
		if g.serving {
			g.changed.Wait()
		} else {
			g.run(r)
		}
	}
	return r.err
}

// run serves r, which is next. g.mu is locked, but not while serve runs.
func (g *Group[T]) run(r *round[T]) {
	g.next, g.serving = nil, true
	g.mu.Unlock()
	defer func() { // also if serve panics: the others of the round must not wait for ever
		g.mu.Lock()
		g.serving, r.done = false, true
		g.changed.Broadcast()
	}()
	r.err = errPanicked
	r.err = g.serve(r.items)
}

// Idle waits until nothing is served.
func (g *Group[T]) Idle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.serving {
		g.changed.Wait()
	}
}
