package async

import (
	"context"
	"runtime"
	"slices"
	"weak"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is about groups at rest: those in which nothing runs. A group that has
// tasks is a member of its owner like any task. When the last of these has left, it
// is none any more, so nobody waits for it; it has a place on another list of the
// owner, by which it is found when the owner is cancelled or ends.
//
// A place keeps its group from being collected only if something is left to be done
// at its end: a hook to be run, a failure to be told. So an owner that lasts for a
// year, as a root does, keeps nothing of groups that were forgotten.

// A place is where a group stands in its owner while it is at rest.
type place struct {
	owner *scope
	group weak.Pointer[Group]
	kept  *Group // keeps the group; guarded by the mu of the group's own scope

	unwatch func() bool               // takes the group off the context that it watches; nil: none
	stopOn  *stopOn                   // the channels that it watches; nil: none
	std     atomicPointer[stdContext] // a copy of the group's own, which is a child of one that may last
	// lost is what went wrong in a group at a root, which has no end at which it
	// would be told. It does not refer to the group.
	lost *tally.Tally

	prev, next *place // on the list of the owner; guarded by owner.mu
	listed     bool   // guarded by owner.mu
}

// enroll gives g, which has no tasks, its place in its owner; false if that has
// ended.
func (g *Group) enroll() bool {
	s := &g.s
	p := &place{owner: g.f.t.owner, group: weak.Make(g), stopOn: g.m.stopOn}
	g.place = p
	s.shut = true
	s.rare = &rare{left: &g.f.t}
	if exploring {
		p.kept = g // no collector in a schedule
	}
	if !p.enter() {
		s.ended = true
		return false
	}
	s.listenAbove()
	if exploring {
		return true
	}
	s.mu.Lock()
	p.unwatch = s.unwatch
	s.mu.Unlock()
	g.cleanup = runtime.AddCleanup(g, (*place).forget, p)
	return true
}

// enter puts p on the list of its owner; false if that has ended.
func (p *place) enter() bool {
	o := p.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return false
	}
	r := o.rareLocked()
	if p.next = r.resting; p.next != nil {
		p.next.prev = p
	}
	r.resting, p.listed = p, true
	return true
}

// leave takes p off the list of its owner, if it is there.
func (p *place) leave() {
	o := p.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if !p.listed {
		return
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		o.rare.resting = p.next
	}
	p.prev, p.next, p.listed = nil, nil, false
}

// forget is called when the group of p was collected.
func (p *place) forget() {
	p.leave()
	if p.unwatch != nil {
		p.unwatch()
	}
	if p.stopOn != nil && !p.stopOn.bubble {
		p.stopOn.release()
	}
	if std := p.std.Load(); std != nil {
		std.cancel(ErrScopeEnded)
	}
	if p.lost == nil {
		return
	}
	sum := p.lost.Sum(tally.Body{}, nil, nil)
	if p, ok := sum.Panic.(*PanicError); ok && p.printed.CompareAndSwap(false, true) {
		sum.Errs = slices.Insert(sum.Errs, 0, sum.Panic)
	}
	if err := joined(&task{kind: kindGroup, owner: p.owner}, sum.Errs, sum.Dropped); err != nil {
		go p.owner.home.report(err) // users' code: not on the goroutine of the cleanups
	}
}

// restLocked is called when the last task of g has left, with the lock of g's
// scope. In between g has a place and is a member, too: whoever looks finds it.
func (g *Group) restLocked() {
	s := &g.s
	s.shut = true
	g.reviewLocked()
	g.place.enter() // the owner has not ended: g is a member of it
	s.t.owner.leave(s.t)
}

// reviewLocked is called when g has come to rest, and when that at rest has changed
// which decides whether it is kept.
func (g *Group) reviewLocked() {
	if !g.s.shut || g.s.ended {
		return
	}
	g.place.kept, g.place.lost = nil, nil
	switch {
	case g.endMattersLocked():
		g.place.kept = g
	case !g.s.tally.Silent(nil):
		g.place.lost = g.s.tally.Lost(unawaited)
	}
}

// endMattersLocked reports whether something is to be done or told when g, which is
// at rest, ends. What the caller of Cancel or Stop knows need not be told.
func (g *Group) endMattersLocked() bool {
	s := &g.s
	if s.exits != nil || exploring {
		return true
	}
	if s.t.owner.t.kind == kindRoot { // it ends when nobody holds it any more
		return s.tally.HasValues()
	}
	cause := s.sig.Load().because()
	if g.wasAskedLocked(cause) {
		cause = nil
	}
	return !s.tally.Silent(cause)
}

// wakeLocked makes g, which is at rest, a member of its owner; false if that has
// ended. It is called with the lock of g's scope.
func (g *Group) wakeLocked() bool {
	if !g.place.owner.add(&g.f.t) {
		return false
	}
	g.place.leave()
	g.s.shut = false
	return true
}

// admitLocked decides about t, which is to be added to s, as s is shut. A group at
// rest has to be a member of its owner before it has tasks. For a promise it has
// not: nobody waits for one.
func (s *scope) admitLocked(t *task) bool {
	switch {
	case s.ended:
		return false
	case t.kind == kindPromise:
		return true
	default:
		return s.t.self.(*Group).wakeLocked()
	}
}

// keepLocked has the group of s, if it is one, kept until it ends: an exit hook
// was registered, which is to be run.
func (s *scope) keepLocked() {
	if g, ok := s.t.self.(*Group); ok {
		g.place.kept = g
	}
}

// reviewGroupLocked is called when what is to be done or told at the end of s has
// changed, and no task of s has left with that. If s is a group at rest, that decides
// whether it is kept: an exit hook was taken off, or something has gone wrong.
func (s *scope) reviewGroupLocked() {
	if g, ok := s.t.self.(*Group); ok {
		g.reviewLocked()
	}
}

// releaseWhenForgotten has std, which is the context of s, released when s is a group
// that was collected. Not in a synctest bubble: nobody outside may close the channels
// of that, and the collector's cleanups run outside.
func (s *scope) releaseWhenForgotten(std stdContext) {
	if g, ok := s.t.self.(*Group); ok && !inBubble(clock()) {
		g.place.std.Store(&std)
	}
}

// hasRestingLocked reports whether there are groups at rest in s.
func (s *scope) hasRestingLocked() bool { return s.rare != nil && s.rare.resting != nil }

// restingGroupsLocked returns the groups at rest in s, the last one first.
func (s *scope) restingGroupsLocked() (all []*Group) {
	if s.rare == nil {
		return nil
	}
	for p := s.rare.resting; p != nil; p = p.next {
		if g := p.group.Value(); g != nil {
			all = append(all, g)
		}
	}
	return all
}

// lastRestingLocked returns the place of the group that came to rest last in s, nil
// if there is none.
func (s *scope) lastRestingLocked() *place {
	if s.rare == nil {
		return nil
	}
	return s.rare.resting
}

// resting returns the group at p, nil if nobody holds it any more.
func (p *place) resting() *Group {
	if p == nil {
		return nil
	}
	return p.group.Value()
}

// end ends the group at p, because its owner has nothing left but groups at rest. If
// the group is awake by then, it is the owner's to wait for. Either way p is off the
// list, unless the group rests again.
func (p *place) end() {
	if g := p.resting(); g != nil {
		g.close(true)
	} else {
		p.leave()
	}
}

// whenDone returns what cancels s when ctx is done. A group is not kept by what it
// watches.
func (s *scope) whenDone(ctx context.Context) func() {
	if s.t.kind != kindGroup {
		return func() { s.cancel(stopOf(ctx)) }
	}
	group := weak.Make(s.t.self.(*Group))
	return func() {
		if g := group.Value(); g != nil {
			g.s.cancel(stopOf(ctx))
		}
	}
}
