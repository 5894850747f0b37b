// Package survey looks at a live tree and draws a picture of it.
//
// It takes the lock of one scope at a time, for at most tree.MostSeen members, and then works on what
// it has seen: names, places and texts are made with no lock held. What is wrong with the tree is
// decided by package rings and by counting, so a look that was cut short says less, and nothing that is not so.
package survey

import (
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Options say what is to be seen.
type Options struct {
	Top    *tree.Task // the look begins here; nil: the root of the process
	AtMost int        // so many nodes; 0: 5,000
	Texts  bool       // texts of users' errors
	Stacks int        // so many stacks of stragglers; they take a look that stops the world
}

// Bounds of a look. A tree that exceeds them is shown in part, and the picture says so.
const (
	mostTasks = 1 << 20
	mostTime  = time.Second
	untimed   = 1 << 17 // so many tasks are seen however long that takes: that a machine is busy is no reason to show less
	mostNodes = 5000    // by default
)

// A task is what was seen of one task.
type task struct {
	t       *tree.Task
	told    *tree.StopError
	ordinal int64
	owner   int32 // in which task it was started, an index of tasks; -1 for the root
	scope   int32 // an index of scopes; -1: it has none
	name    int32 // an index of names
	waiters int32
	state   int8
	shown   bool
}

// A scope is what was seen of the scope of a task.
type scope struct {
	number      int64
	started     int64
	parts       []any
	live        int32
	unclaimed   int32
	first, last int32 // its members are tasks[first:last], the oldest first
	wait, over  int32 // the waits of its task are waits[wait:over]
	joins       bool
}

// A survey is one look.
type survey struct {
	Options
	began     time.Time
	tasks     []task
	scopes    []scope
	waits     []tree.Wait
	names     names
	left      map[int64]bool // scopes that have returned without their tasks, and were met
	unreached int
	timeUp    bool
	waiting   bool // a wait for a future was seen, or a task that queues
}

// walk looks at everything below root: scope by scope, what is nearer to the root first.
func (s *survey) walk(root *tree.Task) {
	s.tasks = append(s.tasks, task{
		t: root, told: tree.ToldAround(root), owner: -1, scope: -1, state: int8(tree.StateRunning),
	})
	var v tree.View
	for i := 0; i < len(s.tasks); i++ {
		if t := s.tasks[i].t; tree.HasScope(t) {
			s.scope(int32(i), &v)
		}
	}
}

// scope looks at the scope of task i.
func (s *survey) scope(i int32, v *tree.View) {
	t := s.tasks[i].t
	number := tree.NumberOf(t.Scope())
	if tree.LeftBehind(t) {
		if s.left[number] {
			return
		}
		s.left[number] = true
	}
	sc := scope{number: number, first: int32(len(s.tasks))}
	s.tasks[i].scope = int32(len(s.scopes))
	var c tree.Cursor
	for more, begun := true, false; more; begun = true {
		if more = tree.LookAt(t, v, &c); !begun {
			sc.started, sc.live, sc.unclaimed, sc.joins = v.Started, int32(v.Live), int32(v.Unclaimed), v.Joins
			sc.wait = int32(len(s.waits))
			s.waits = append(s.waits, v.Waits...)
			sc.over = int32(len(s.waits))
			sc.parts = append(sc.parts, v.Parts...)
			s.tasks = slices.Grow(s.tasks, min(v.Live, mostTasks))
		}
		if !s.take(i, v.Members) {
			s.unreached += max(v.Live-(len(s.tasks)-int(sc.first)), 0)
			break
		}
	}
	sc.last = int32(len(s.tasks))
	s.makeRoom(s.tasks[sc.first:sc.last])
	slices.Reverse(s.tasks[sc.first:sc.last])
	for n := sc.wait; n < sc.over; n++ {
		s.waiting = s.waiting || s.waits[n].Kind == tree.ForFuture
	}
	s.scopes = append(s.scopes, sc)
}

// makeRoom makes room for the scopes of members that have one, and for a wait of each: what grows bit by
// bit is copied several times, and is garbage that many stacks are looked through for.
func (s *survey) makeRoom(members []task) {
	n := 1 // the scope that they are in
	for i := range members {
		if tree.HasScope(members[i].t) {
			n++
		}
	}
	s.scopes, s.waits = slices.Grow(s.scopes, n), slices.Grow(s.waits, n)
}

// waitsIn returns the waits of the task of a scope.
func (s *survey) waitsIn(scope int32) []tree.Wait {
	if scope < 0 {
		return nil
	}
	return s.waits[s.scopes[scope].wait:s.scopes[scope].over]
}

// take notes members of task i, and reports false if it is time to stop.
func (s *survey) take(i int32, members []tree.Member) bool {
	if s.timeUp = s.timeUp || len(s.tasks) > untimed && time.Since(s.began) > mostTime; s.timeUp {
		return false
	}
	told := s.tasks[i].told
	if s.tasks[i].t.Kind == tree.KindRoot {
		told = nil
	}
	for _, m := range members {
		if len(s.tasks) >= mostTasks {
			return false
		}
		state := m.Task.State.Load()
		s.waiting = s.waiting || state == tree.StateQueued
		s.tasks = append(s.tasks, task{
			t: m.Task, told: tree.ToldTo(m.Task, told), ordinal: m.Ordinal, owner: i, scope: -1,
			name: s.names.of(m.Task), state: int8(state),
		})
	}
	return true
}

// isStraggler reports whether task i was told to stop, and its handler is still there.
func (s *survey) isStraggler(i int32) bool {
	t := &s.tasks[i]
	return t.told != nil && t.state == int8(tree.StateRunning) && s.runs(i)
}

// runs reports whether the handler of task i is what is under way, and not only what that has started
// on its own goroutine.
func (s *survey) runs(i int32) bool {
	t := &s.tasks[i]
	switch t.t.Kind {
	case tree.KindChoice, tree.KindFork, tree.KindGroup, tree.KindLeft, tree.KindPromise, tree.KindRoot:
		return false
	}
	if t.scope < 0 {
		return true
	}
	for c := s.scopes[t.scope].first; c < s.scopes[t.scope].last; c++ {
		if kind := s.tasks[c].t.Kind; kind == tree.KindScope || kind == tree.KindRun {
			return false
		}
	}
	return true
}

// future returns the future of t, nil if nobody can wait for t.
func future(t *tree.Task) *tree.Future {
	if t.Self == nil {
		return nil
	}
	return t.Self.Future()
}
