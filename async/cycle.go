package async

import (
	"fmt"
	"slices"
	"strings"
)

// This file finds waits that lead back to themselves. A task cannot settle
// before what it waits for and before everything started in it, so the search
// goes backwards: from the waiter and all it is part of, to whoever waits for
// one of these, and so on. If one of them is part of what the waiter is about
// to wait for, nobody in the ring can ever go on.

// A hop is one wait that was seen: by waits on a future. The same waiter with
// the same serial is the same wait.
type hop struct {
	w      *waiter
	serial uint64
	on     *future
	by     *task
	after  int // the hop that led here; -1 for the first
}

// cycle returns an ErrAwaitCycle if me must not wait for f. It is called
// after the wait was registered: of two that close a ring at the same time
// the later sees the earlier.
func (f *future) cycle(me *task) error {
	if me == nil || f.t.isLeaf() || f.t.kind == kindChoice {
		// f has started and awaited nothing: if it does later, it sees us. And a
		// choice may be decided by a contender that waits for nobody.
		return nil
	}
	for {
		hops, found := f.ring(me)
		if !found {
			return nil
		}
		// Each edge was seen once while the ring was found and is looked at
		// again now. All that pass have existed from the first look to the
		// second, so there was a moment when all of them did.
		path, sure := pathOf(hops)
		if sure {
			path = append([]string{me.name(), f.t.name()}, path...)
			return fmt.Errorf("%w: %s", ErrAwaitCycle, strings.Join(path, " -> "))
		}
	}
}

// around returns an ErrAwaitCycle if me is part of f. It is called before the
// wait is registered: who awaits me must not take this wait for one that lasts.
func (f *future) around(me *task) error {
	if me == nil || f.t.isLeaf() || f.t.kind == kindChoice || !me.partOf(&f.t) {
		return nil
	}
	return fmt.Errorf("%w: %s -> %s", ErrAwaitCycle, me.name(), f.t.name())
}

// isLeaf reports whether t has started and awaited nothing so far.
func (t *task) isLeaf() bool {
	h := t.inner.Load()
	return h == nil || h == endedScope
}

// partOf reports whether t is u or was started in it, at any depth.
func (t *task) partOf(u *task) bool {
	for ; t != nil; t = t.up() {
		if t == u {
			return true
		}
	}
	return false
}

// up returns the task that t is part of, nil for none: what a scope has left
// behind is no part of it.
func (t *task) up() *task {
	if t.owner == nil || t.owner.abandoned.Load() {
		return nil
	}
	return t.owner.t
}

// ring searches backwards from me for somebody who is part of f. The hops it
// returns end with the one that closes the ring.
func (f *future) ring(me *task) (hops []hop, found bool) {
	seen := make(map[*task]struct{}) // tasks that were looked at, with all they are part of
	hops, found = f.waitersOf(hops, me, -1, nil)
	for i := 0; i < len(hops) && !found; i++ {
		hops, found = f.waitersOf(hops, hops[i].by, i, seen)
	}
	return hops, found
}

// waitersOf adds to hops who waits for t or anything it is part of. It stops
// at one that is part of f.
func (f *future) waitersOf(hops []hop, t *task, after int, seen map[*task]struct{}) ([]hop, bool) {
	for ; t != nil; t = t.up() {
		if seen != nil {
			if _, before := seen[t]; before {
				break
			}
			seen[t] = struct{}{}
		}
		if t.self == nil || t.self.future() == nil || t.kind == kindChoice {
			continue
		}
		on := t.self.future()
		on.mu.Lock()
		for w := on.waiters; w != nil; w = w.next {
			if w.by == nil || t.partOf(w.by) {
				continue // nobody we know, or one further up that the loop comes to
			}
			hops = append(hops, hop{w, w.serial, on, w.by, after})
			if w.by.partOf(&f.t) {
				on.mu.Unlock()
				return hops, true
			}
		}
		on.mu.Unlock()
	}
	return hops, false
}

// pathOf returns the names along the ring that the last hop closes, and
// whether every wait of it still lasts.
func pathOf(hops []hop) (names []string, sure bool) {
	for i := len(hops) - 1; i >= 0; i = hops[i].after {
		h := hops[i]
		if !h.on.waits(h.w, h.serial) {
			return nil, false
		}
		names = append(names, h.by.name(), h.on.t.name())
	}
	return slices.Compact(names), true
}

// waits reports whether w is still on f's list, in the same wait.
func (f *future) waits(w *waiter, serial uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for x := f.waiters; x != nil; x = x.next {
		if x == w {
			return w.serial == serial
		}
	}
	return false
}
