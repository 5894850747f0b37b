package sqlstore

import "github.com/ambit-go/ambit/taskqueue"

// lookEdges reads what waits for what.
func (a *audit) lookEdges() []query {
	return []query{
		{text: "SELECT parent, child, on_failed FROM tq_edge WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
			var e edge
			err := scan(&e.parent, &e.child, (*string)(&e.onFailed))
			a.edges = append(a.edges, e)
			return err
		}},
		{text: "SELECT parent FROM tq_release WHERE queue = $1", args: []any{a.queue}, each: func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			a.releases[id] = true
			return err
		}},
	}
}

// children looks for tasks that wait and were told nothing.
func (a *audit) children() {
	waits := map[string]bool{}
	for _, e := range a.edges {
		state, known := a.states[e.parent]
		switch waits[e.child] = true; {
		case a.states[e.child] != taskqueue.StateWaiting:
			a.fault("task %s is noted to wait for %s, and does not wait", e.child, e.parent)
		case a.releases[e.parent] || known && !state.Ended() || state != taskqueue.StateDone && e.onFailed == taskqueue.OnFailedWait:
		default:
			a.fault("task %s waits for %s, which has ended, and was not told", e.child, e.parent)
		}
	}
	for id, state := range a.states {
		if state == taskqueue.StateWaiting && !waits[id] {
			a.fault("task %s waits for nothing", id)
		}
	}
}
