package tree

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/internal/bridge"
)

// This file finds waits that lead back to themselves.
//
// A task cannot settle before what it waits for has, and not before everything
// that was started in it has. If task a waits for b, and that leads from one to
// the next back to a, none of them can ever go on. So a wait looks for such a
// ring when it is about to block, and is refused if there is one.
//
// Every wait is registered in two places before it looks: on the list of the
// future that is waited for, and with the task that waits. If two close a ring at the same time,
// the later one sees the earlier one, and both may; then one of them is refused.
//
// How the search is done is in cyclesearch.go.

// firstBudget is how many steps each end of the search takes first: enough for
// most, which wait for a task that itself waits for nothing.
const firstBudget = 16

// refusing makes the refusals of waits one after another. If several close a ring together, each
// sees the others, and one is enough to break it. The lock is held for two looks at a ring that was
// found, and comes before all others.
var refusing Mutex

// refuse ends the wait of w for f if that closes ring, and reports whether it did.
// A wait that was refused at the same time is gone from the ring by then.
func (f *Future) refuse(w *Waiter, ring []edge) bool {
	refusing.Lock()
	defer refusing.Unlock()
	if !allLast(ring) || !mayHang(&f.Task) {
		return false
	}
	f.removeWaiter(w)
	return true
}

// cycle returns an ErrAwaitCycle if me must not wait for f. It is called after
// the wait was registered as that of w, and ends it then.
//
// There are two ways to search: forward from f, through what it waits for, and
// backward from me, through what waits for it. Either may be long, when f has
// started a million tasks or a million wait for me, while the other is short. So
// both take turns, with budgets that grow, until one of them has seen all.
func (f *Future) cycle(me *Task, w *Waiter) error {
	s := searches.Get().(*cycleSearch)
	defer s.release()
	for budget := firstBudget; ; budget *= 4 {
		for _, search := range [...]func(*cycleSearch) ([]edge, bool){(*cycleSearch).forward, (*cycleSearch).backward} {
			s.begin(me, f, budget)
			ring, complete := search(s)
			// Each edge was seen once while the ring was found and is looked at
			// again now. All that last have existed from the first look to the
			// second, so there was a moment when all of them did.
			if ring != nil && f.refuse(w, ring) {
				return cycleError(me, f, ring)
			}
			if ring == nil && complete {
				return nil
			}
		}
	}
}

// tellExecutor tells the executor of the task that s waits for, if that is made for it. A
// worker of package scheduler looks for rings that lead through workers: it returns an
// error if s could never end.
func (s *oneWait) tellExecutor() (err error) {
	d := s.f.Task.More.Delivery
	if d == nil {
		return nil
	}
	if x, ok := d.Executor.(bridge.Awaited); ok {
		s.over, err = x.Awaited(s.ctx, bridge.Token{})
	}
	return err
}

func allLast(ring []edge) bool {
	for i := range ring {
		if !ring[i].lasts() {
			return false
		}
	}
	return true
}

// SelfCycle returns an ErrAwaitCycle if f cannot settle before me, because me is
// f or was started in it. It is called before the wait is registered: a search
// from another wait, for me, must not take this wait for one that lasts.
func (f *Future) SelfCycle(me *Task) error {
	if me != &f.Task && !new(cycleSearch).holdsUp(me, &f.Task) {
		return nil
	}
	return cycleError(me, f, nil)
}

// mayLeadTo reports whether a wait of me for f may lead back to me, so that it takes
// a search to know: not if f has started and awaited nothing. If it does later, it
// sees us. me is nil if nobody knows who waits.
func (f *Future) mayLeadTo(me *Task) bool {
	return me != nil && (me == &f.Task || !isLeaf(&f.Task))
}

// cycleError returns the error of a wait of me for f that closes a ring. Its
// text is one path from me to me: each task waits for the next, or the next is a
// part of it.
func cycleError(me *Task, f *Future, ring []edge) error {
	me = wholeOf(me)
	path := []*Task{me, &f.Task}
	for _, e := range ring {
		if by := wholeOf(e.by); by != path[len(path)-1] {
			path = append(path, by)
		}
		path = append(path, &e.on.Task)
	}
	if path[len(path)-1] != me {
		path = append(path, me) // a part of that
	}
	names := make([]string, len(path))
	for i, t := range path {
		names[i] = t.Name()
	}
	return fmt.Errorf("%w: %s", ErrAwaitCycle, strings.Join(names, " -> "))
}
