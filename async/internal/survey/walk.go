// Package survey looks at a live tree and draws a picture of it.
//
// It takes the lock of one scope at a time, for at most tree.MostSeen members, and then works on what
// it has seen: names, places and texts are made with no lock held. Package rings and counting
// decide whether something is wrong with the tree, so a look that was cut short says less, and nothing that is not so.
package survey

import (
	"cmp"
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
	untimed   = 1 << 17 // so many tasks are seen however long that takes: a busy machine is no reason to show less
	mostNodes = 5000    // by default
)

// A task is what was seen of one task. All questions that are asked of many tasks are answered from it: of
// a hundred thousand tasks each visit is one to memory that is in no cache.
type task struct {
	t       *tree.Task
	told    *tree.StopError
	ordinal int64
	owner   int32 // in which task it was started, an index of tasks; -1 for the root
	scope   int32 // an index of scopes; -1: it has none
	name    int32 // an index of names
	waiters int32
	kind    tree.Kind
	state   int8
	shown   bool
	future  bool // somebody can wait for it
	special bool // it has what only options give: a Limit, an executor, restarts
	excused bool // the end of its owner dismisses it
}

// A scope is what was seen of the scope of a task.
type scope struct {
	started     int64
	live        int32
	unclaimed   int32
	first, last int32 // its members are tasks[first:last], the oldest first
	wait, over  int32 // the waits of its task are waits[wait:over]
	awaits      bool  // one of those is for a future
	joins       bool
	limits      bool // it has brought a Limit
}

// A registered part is what another package has registered with a scope.
type registered struct {
	scope  int32 // an index of scopes
	number int64 // of the scope
	part   any
}

// A survey is one look.
type survey struct {
	Options
	began     time.Time
	tasks     []task
	scopes    []scope
	waits     []tree.Wait
	parts     []registered
	names     names
	left      map[*tree.Scope]bool // scopes that have returned without their tasks, and were met
	view      tree.View            // of the scope that is looked at; has the waits
	unreached int
	timeUp    bool
	waiting   bool // a wait for a future was seen, or a task that queues
}

// walk looks at everything below root: scope by scope, what is nearer to the root first.
func (s *survey) walk(root *tree.Task) {
	top := taskOf(root, -1)
	top.told, top.state = tree.ToldAround(root), int8(tree.StateRunning)
	s.tasks = append(s.tasks, top)
	for i := 0; i < len(s.tasks); i++ {
		if t := &s.tasks[i]; t.scope < 0 && tree.HasScope(t.t) {
			s.scope(int32(i))
		}
	}
	s.waits = s.view.Waits.All
	s.orderParts()
}

// orderParts puts what is registered into the order of the tasks, whichever scopes were looked at first.
func (s *survey) orderParts() {
	if len(s.parts) == 0 {
		return
	}
	place := make([]int32, len(s.scopes))
	for i := range s.tasks {
		if sc := s.tasks[i].scope; sc >= 0 {
			place[sc] = int32(i)
		}
	}
	slices.SortStableFunc(s.parts, func(a, b registered) int { return cmp.Compare(place[a.scope], place[b.scope]) })
}

// scope looks at the scope of task i.
func (s *survey) scope(i int32) {
	t := s.tasks[i].t
	if tree.LeftBehind(t) {
		if s.left[t.Scope()] {
			return
		}
		s.left[t.Scope()] = true
	}
	s.room(1)
	first := int32(len(s.tasks))
	wait := len(s.view.Waits.All)
	var c tree.Cursor
	more := tree.LookAt(t, &s.view, &c)
	n := s.seen(i, wait)
	s.tasks = slices.Grow(s.tasks, min(s.view.Live, mostTasks))
	for left := s.view.Live; ; more = tree.LookAt(t, &s.view, &c) {
		members := len(s.view.Members)
		if !s.take(i, max(left, members)) {
			s.unreached += max(int(s.scopes[n].live)-(len(s.tasks)-int(first)), 0)
			break
		}
		if left -= members; !more {
			break
		}
	}
	s.scopes[n].first, s.scopes[n].last = first, int32(len(s.tasks))
	slices.Reverse(s.tasks[first:])
}

// seen notes what the view shows of the scope of task i, the first of whose waits is given, and returns
// the index of the scope.
func (s *survey) seen(i int32, wait int) int {
	v, t := &s.view, &s.tasks[i]
	number := tree.NumberOf(t.t.Scope())
	t.scope = int32(len(s.scopes))
	awaits := false
	for n := wait; n < len(v.Waits.All) && !awaits; n++ {
		awaits = v.Waits.All[n].Kind == tree.ForFuture
	}
	s.waiting = s.waiting || awaits
	s.scopes = append(s.scopes, scope{
		started: v.Started, live: int32(v.Live), unclaimed: int32(v.Unclaimed),
		wait: int32(wait), over: int32(len(v.Waits.All)), awaits: awaits, joins: v.Joins, limits: v.Limits,
	})
	for _, part := range v.Parts {
		s.parts = append(s.parts, registered{t.scope, number, part})
	}
	return int(t.scope)
}

// room makes room for n more scopes, and a wait of each: what grows bit by bit is copied several times, and
// is garbage that many stacks are looked through for.
func (s *survey) room(n int) {
	s.scopes = slices.Grow(s.scopes, n)
	s.view.Waits.Reserve(n)
}

// waitsIn returns the waits of the task of a scope.
func (s *survey) waitsIn(scope int32) []tree.Wait {
	if scope < 0 {
		return nil
	}
	return s.waits[s.scopes[scope].wait:s.scopes[scope].over]
}

// take notes the members of task i that are in the view, of which left are left to come, these included, and reports
// false if it is time to stop. Those whose scopes are empty are looked at while they are in the cache.
func (s *survey) take(i int32, left int) bool {
	if s.timeUp = s.timeUp || len(s.tasks) > untimed && time.Since(s.began) > mostTime; s.timeUp {
		return false
	}
	told := s.tasks[i].told
	if s.tasks[i].kind == tree.KindRoot {
		told = nil
	}
	members := s.view.Members
	all := len(members) <= mostTasks-len(s.tasks)
	if !all {
		members = members[:mostTasks-len(s.tasks)]
	}
	first, scopes := len(s.tasks), 0
	for _, m := range members {
		t := m.Task
		s.tasks = append(s.tasks, taskOf(t, i))
		one := &s.tasks[len(s.tasks)-1]
		one.told, one.ordinal, one.name = tree.ToldTo(t, told), m.Ordinal, s.names.of(t)
		s.waiting = s.waiting || one.state == int8(tree.StateQueued)
		if tree.HasScope(t) {
			scopes++
		}
	}
	if scopes > 0 {
		if cap(s.scopes)-len(s.scopes) < scopes {
			s.room(s.expect(scopes, len(members), left))
		}
		s.empty(first)
	}
	return all
}

// taskOf notes what t shows without its owner.
func taskOf(t *tree.Task, owner int32) task {
	return task{
		t: t, owner: owner, scope: -1, kind: t.Kind, state: int8(t.State.Load()),
		future: future(t) != nil, special: t.More != nil, excused: t.IsDismissible(),
	}
}

// expect returns for how many scopes there is to be room, when so many of members have one and so many members are
// left. As large a share of those that are to come may have one; of few seen scopes nothing follows.
func (s *survey) expect(scopes, members, left int) int {
	n := min(scopes*left/members, mostTasks)
	if seen := len(s.scopes); seen < 4096 {
		n = min(n, scopes+3*seen)
	}
	return max(n, scopes)
}

// empty looks at the scopes of tasks from the given one on that have no members.
func (s *survey) empty(first int) {
	for j := len(s.tasks) - 1; j >= first; j-- { // the oldest first, so that it has the smaller number
		t := s.tasks[j].t
		if !tree.HasScope(t) || tree.LeftBehind(t) {
			continue
		}
		s.view.Waits.Reserve(0)
		if wait := len(s.view.Waits.All); tree.LookAtEmpty(t, &s.view) {
			s.seen(int32(j), wait)
		}
	}
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
	switch t.kind {
	case tree.KindChoice, tree.KindFork, tree.KindGroup, tree.KindLeft, tree.KindPromise, tree.KindRoot:
		return false
	}
	if t.scope < 0 {
		return true
	}
	for c := s.scopes[t.scope].first; c < s.scopes[t.scope].last; c++ {
		if kind := s.tasks[c].kind; kind == tree.KindScope || kind == tree.KindRun {
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
