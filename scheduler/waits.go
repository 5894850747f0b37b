package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async"
)

// This file finds waits that lead back to the worker whose task waits.
//
// A task of worker a that waits for worker b, or for a future on b, is an arrow from a to
// b: the task of a returns after the one that b runs, if not later. When the arrows lead
// from a back to a, nothing on the way can ever go on. So a wait looks for such a ring
// when it is about to block, and is refused if there is one. Who waits is read from ctx:
// the task that runs, of the worker that ctx belongs to. A wait from outside of tasks is
// no arrow, and costs nothing.

// ringMu guards the arrows of all workers. An arrow is added in the step that looks for
// the ring, so of two that close one the later sees the earlier.
var ringMu mutex

// A running is a task of a worker, as its context shows it.
type running interface {
	worker() *vertex
	runs() bool             // it has begun and not ended
	outer() context.Context // what its context is a child of
}

type runningKey struct{}

// runningIn returns the innermost task that ctx belongs to, nil if there is none.
func runningIn(ctx context.Context) running {
	r, _ := ctx.Value(runningKey{}).(running)
	return r
}

// A vertex is a worker as those see it who look for rings.
type vertex struct {
	name   string
	d      *dispatcher
	arrows []*arrow // the waits of its tasks for other workers; guarded by ringMu
}

// An arrow is one wait that goes on.
type arrow struct {
	by   running
	to   *vertex
	over func() bool // what by waits for has come
}

// lasts reports whether the wait goes on. It has since the arrow was added: neither the end of
// the task nor what it waits for is taken back.
func (a *arrow) lasts() bool { return a.by.runs() && !a.over() }

// awaited is called for a wait with ctx for v, which lasts until over says that what is
// waited for has come. It returns an error if the wait could never end. Otherwise left, which
// is nil if ctx belongs to no task that runs, is called when the wait has ended.
func (v *vertex) awaited(ctx context.Context, over func() bool) (left func(), err error) {
	by, self := v.runsAround(ctx)
	switch {
	case self:
		return nil, ErrSelfWait
	case by == nil:
		return nil, nil
	}
	from, a := by.worker(), &arrow{by, v, over}
	ringMu.Lock()
	if ring := v.leadsTo(from, make(map[*vertex]bool)); ring != nil && a.lasts() {
		ringMu.Unlock()
		return nil, ringError(from, ring)
	}
	first := !from.hasArrowIn(v.d)
	from.arrows = append(from.arrows, a)
	ringMu.Unlock()
	if first && from.d == v.d {
		v.d.lend()
	}
	return func() { from.leave(a) }, nil
}

// runsAround returns the innermost task that ctx belongs to and that has not ended, nil if there is
// none, and whether a task of v is among those that ctx belongs to. The ctx of a task that has
// ended is that of no task.
func (v *vertex) runsAround(ctx context.Context) (by running, self bool) {
	for r := runningIn(ctx); r != nil; r = runningIn(r.outer()) {
		switch {
		case !r.runs():
		case r.worker() == v:
			return r, true
		case by == nil:
			by = r
		}
	}
	return by, false
}

// leave takes a, whose wait has ended, off v.
func (v *vertex) leave(a *arrow) {
	ringMu.Lock()
	i := slices.Index(v.arrows, a)
	v.arrows = slices.Delete(v.arrows, i, i+1)
	last := !v.hasArrowIn(a.to.d)
	ringMu.Unlock()
	if last && v.d == a.to.d {
		v.d.takeBack()
	}
}

// hasArrowIn reports whether a task of v waits for a worker of d. ringMu is held.
func (v *vertex) hasArrowIn(d *dispatcher) bool {
	return slices.ContainsFunc(v.arrows, func(a *arrow) bool { return a.to.d == d })
}

// leadsTo returns the workers from to back to v, both included, along arrows that last. It is
// nil if there is no such way. ringMu is held; seen are the workers that it came by.
func (v *vertex) leadsTo(to *vertex, seen map[*vertex]bool) []*vertex {
	switch {
	case v == to:
		return []*vertex{v}
	case seen[v] || len(v.arrows) == 0:
		return nil
	}
	seen[v] = true
	for _, a := range v.arrows {
		if !a.lasts() {
			continue
		}
		if way := a.to.leadsTo(to, seen); way != nil {
			return append(way, v)
		}
	}
	return nil
}

func ringError(from *vertex, ring []*vertex) error {
	names := []string{from.name}
	for _, v := range slices.Backward(ring) {
		names = append(names, v.name)
	}
	return fmt.Errorf("%w: %s", async.ErrAwaitCycle, strings.Join(names, " -> "))
}
