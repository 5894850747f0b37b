// Package audit compares what a store has of a queue with what its tasks say should be there. A store
// fills in what it has, shows each task, and looks by itself at what is its own.
package audit

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// An Audit is that of one queue. Use New.
type Audit struct {
	Faults    []string
	LastToken int64                      // that was given
	Holders   map[string]string          // by unique key
	States    map[string]taskqueue.State // by id; of the tasks that were shown
	Edges     []Edge
	Releases  map[string]bool // by id: it has not told all its children yet
	Held      map[string]int  // leases of each group of a limit
	Parked    map[string]int  // tasks that limits keep, by version and group
	Wakes     map[string]bool // by group: the next claims look at it
}

// An Edge says that a task waits for another.
type Edge struct {
	Parent, Child string
	OnFailed      taskqueue.OnFailed
}

// New returns an audit of nothing.
func New() *Audit {
	return &Audit{
		Holders: map[string]string{}, States: map[string]taskqueue.State{}, Releases: map[string]bool{},
		Held: map[string]int{}, Parked: map[string]int{}, Wakes: map[string]bool{},
	}
}

// Fault notes something that is wrong.
func (a *Audit) Fault(format string, args ...any) {
	a.Faults = append(a.Faults, fmt.Sprintf(format, args...))
}

// Task looks at a task. group is that of the limit under which it runs, and takes its key off the holders.
func (a *Audit) Task(i *taskqueue.Info, group string) {
	a.States[i.ID] = i.State
	if i.State == taskqueue.StateRunning && group != "" {
		a.Held[group]++
	}
	if i.Token > a.LastToken {
		a.Fault("task %s has token %d, the last that was given is %d", i.ID, i.Token, a.LastToken)
	}
	if i.UniqueKey == "" {
		return
	}
	switch held, started := a.Holders[i.UniqueKey] == i.ID, i.Token > 0 && i.Until == taskqueue.Start; {
	case held && i.State.Ended():
		a.Fault("task %s holds the unique key %q though it has ended", i.ID, i.UniqueKey)
		fallthrough
	case held:
		delete(a.Holders, i.UniqueKey)
	case !i.State.Ended() && !started:
		a.Fault("task %s should hold the unique key %q, which task %q holds", i.ID, i.UniqueKey, a.Holders[i.UniqueKey])
	}
}

// End looks at what is beside the tasks, when all of them were shown. limits are those of the queue.
func (a *Audit) End(limits string) error {
	for key, id := range a.Holders {
		a.Fault("the unique key %q is held by %s, which is not there", key, id)
	}
	a.children()
	set, err := limit.Parse(limits)
	if err == nil && set != nil {
		a.parked(set)
	}
	return err
}

// children looks for tasks that wait and were told nothing.
func (a *Audit) children() {
	waits := map[string]bool{}
	for _, e := range a.Edges {
		state, known := a.States[e.Parent]
		switch waits[e.Child] = true; {
		case a.States[e.Child] != taskqueue.StateWaiting:
			a.Fault("task %s is noted to wait for %s, and does not wait", e.Child, e.Parent)
		case a.Releases[e.Parent] || known && !state.Ended() || state != taskqueue.StateDone && e.OnFailed == taskqueue.OnFailedWait:
		default:
			a.Fault("task %s waits for %s, which has ended, and was not told", e.Child, e.Parent)
		}
	}
	for id, state := range a.States {
		if state == taskqueue.StateWaiting && !waits[id] {
			a.Fault("task %s waits for nothing", id)
		}
	}
}

// parked looks for tasks that are parked though there is room, and that nothing brings back.
func (a *Audit) parked(set *limit.Set) {
	for limited, n := range a.Parked {
		group, current := strings.CutPrefix(limited, set.Prefix())
		if !current || a.Wakes[group] {
			continue // the next claims bring them back
		}
		if l := set.Group(group); l == nil || l.Concurrency == 0 || a.Held[group] < l.Concurrency {
			a.Fault("%d tasks under the limit %q are parked, and nothing brings them back", n, group)
		}
	}
}
