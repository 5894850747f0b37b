package sqlstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/after"
)

// lookParents locks what the tasks are to run after, and reads how it is. Nothing is done for tasks that
// run after nothing.
func (a *adding) lookParents() error {
	var parents, own []string
	for _, t := range a.tasks {
		if len(t.After) > 0 {
			parents, own = append(parents, t.After...), append(own, t.ID)
		}
	}
	if len(own) == 0 {
		return nil
	}
	a.states = map[string]taskqueue.State{}
	known := map[string]taskqueue.State{}
	into := func(all map[string]taskqueue.State) func(scanner) error {
		return each2(func(id string, state int64) { all[id] = readState(state) })
	}
	lock, look, ids := load(lockParents, a.step.queue, parents, nil), load(readStates, a.step.queue, parents, nil), load(readStates, a.step.queue, own, nil)
	// A row that is locked may be read as it was before; the next statement sees it as it is.
	locked := map[string]taskqueue.State{}
	lock.each, look.each, ids.each = into(locked), into(a.states), into(known)
	for again := true; again; again = len(locked) < len(a.states) { // a parent that is added between the two is not locked yet
		clear(a.states)
		if err := a.step.t.run(lock, look, ids); err != nil {
			return err
		}
	}
	before := map[string]bool{}
	for _, t := range a.tasks {
		_, exists := known[t.ID]
		for _, id := range t.After {
			if _, is := a.states[id]; !is && !before[id] && !exists && !before[t.ID] {
				return after.Unknown(a.step.queue, t.ID, id)
			}
		}
		before[t.ID] = true
	}
	return nil
}

// waitsFor returns the tasks that t has to wait for. Those that are not there yet are added with it.
func (a *adding) waitsFor(t *taskqueue.Task) (all []string) {
	for _, id := range t.After {
		state, known := a.states[id]
		if !known || !state.Ended() || holdsBack(state, t.OnFailed) {
			all = append(all, id)
		}
	}
	return all
}

// link has tasks that were added wait for their parents. A parent that has failed already tells them so in
// this step; in a transaction of a user the next claim does that.
func (a *adding) link(results []taskqueue.Result) error {
	added := map[string]int{} // the place of the one of each id that was added
	for i, r := range results {
		if r.Verdict == taskqueue.Added {
			added[a.tasks[i].ID] = i
		}
	}
	var edges [][]any
	failed := ends{}
	for i, t := range a.tasks {
		if len(t.After) == 0 || results[i].Verdict == taskqueue.Exists {
			continue
		}
		for _, id := range a.waitsFor(t) {
			state, known := a.states[id]
			if at, is := added[id]; !known && (!is || at > i) {
				return a.notAdded(results, i, id)
			}
			if results[i].Verdict == taskqueue.Duplicate {
				continue
			}
			if state.Ended() && t.OnFailed != taskqueue.OnFailedWait {
				failed[id] = state
			}
			edges = append(edges, []any{id, t.ID, a.step.queue, string(t.OnFailed)})
		}
	}
	if len(edges) == 0 {
		return nil
	}
	if a.foreign {
		return a.step.t.run(in(insertEdges, edges), releaseLater(a.step.queue, failed))
	}
	if err := a.step.t.run(in(insertEdges, edges)); err != nil {
		return err
	}
	return a.step.release(failed)
}

// notAdded is why a parent that was to be added with its child was not.
func (a *adding) notAdded(results []taskqueue.Result, child int, parent string) error {
	for i, r := range results[:child] {
		if a.tasks[i].ID == parent && r.Verdict == taskqueue.Duplicate {
			return after.Refused(a.tasks[child].ID, parent, a.tasks[i].UniqueKey, r.ID)
		}
	}
	before := slices.ContainsFunc(a.tasks[:child], func(t *taskqueue.Task) bool { return t.ID == parent })
	switch {
	case !before && a.foreign: // some are added already: no InvalidError
		return errors.New(after.Unknown(a.step.queue, a.tasks[child].ID, parent).Error())
	case !before:
		return after.Unknown(a.step.queue, a.tasks[child].ID, parent)
	case a.foreign:
		return fmt.Errorf("taskqueue: task %q was added by another transaction meanwhile: repeat this one", parent)
	}
	return errAgain
}
