package survey

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/look"
	"github.com/ambit-go/ambit/async/internal/rings"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file finds rings of waits. What a task needs before it can settle is noted as it was seen;
// package rings says what can never go on; then every need of what is stuck is looked at again, and
// has to be the same. Each need was seen once before the first of these second looks, and lasts now:
// so there was a moment at which all of them did, and from then on nothing could go on by itself.
//
// A need that is not known to last is none. So is a wait of a task that was told to stop: it is about
// to end.

// A needKind is why a task cannot go on.
type needKind uint8

const (
	needFuture needKind = iota // it waits for a future
	needMember                 // it ends only when what was started in it has
	needSlot                   // it queues for a slot
	needTurn                   // it queues in a part
	needChoice                 // it is a choice that any of its contenders may decide
)

// A why is how a need was seen.
type why struct {
	kind needKind
	wait *tree.Wait   // of needFuture
	of   int32        // of needFuture: with whose context it waits
	at   tree.Limiter // of needSlot
	part int          // of needTurn: an index of parts
}

// A knot is what waits for what.
type knot struct {
	*survey
	g    rings.Graph
	whys []why                // by the number of the need
	at   map[*tree.Task]int32 // what is waited for
	// holders are the tasks that hold a slot of a limiter; held is how many do.
	holders map[tree.Limiter][]int32
	held    map[tree.Limiter]int
	queued  map[tree.Limiter]int
	turns   map[int32]tree.Limiter // by task: where it queues
	places  *places

	stacks   *look.Look         // nil: none were asked for, or there is nothing to look for
	borrowed map[int32]borrowed // by task
}

// A borrowed wait is one that the task by makes with the context of another task, as its stack shows.
type borrowed struct {
	wait *tree.Wait
	of   int32 // whose context it is
}

// knot notes who holds slots, and what other packages show.
func (s *survey) knot() *knot {
	k := &knot{survey: s, at: make(map[*tree.Task]int32), turns: make(map[int32]tree.Limiter)}
	k.holders, k.held = make(map[tree.Limiter][]int32), make(map[tree.Limiter]int)
	k.queued, k.borrowed = make(map[tree.Limiter]int), make(map[int32]borrowed)
	k.places = s.placesOf()
	k.slots()
	return k
}

// waitedFor finds the tasks that others wait for.
func (k *knot) waitedFor() {
	s := k.survey
	for i := range s.waits {
		if w := &s.waits[i]; w.Kind == tree.ForFuture {
			k.at[w.On] = -1
		}
	}
	for i := range s.tasks {
		t := s.tasks[i].t
		if future(t) == nil {
			continue // nobody can wait for it
		}
		if _, wanted := k.at[t]; wanted {
			k.at[t] = int32(i)
		}
	}
}

// find notes what waits for what.
func (k *knot) find() {
	if !k.waiting {
		return
	}
	// Tasks further from the root come first: so it is known of each task whether it needs anything
	// when its owner comes.
	needs := make([]bool, len(k.tasks))
	most := 2 * (len(k.waits) + len(k.turns)) // for each its own, and one of its owner
	k.whys = make([]why, 0, most)
	k.g.Grow(most)
	for i := len(k.tasks) - 1; i > 0; i-- {
		k.task(int32(i), needs)
	}
}

// slots notes who holds slots of limits, and who queues.
func (k *knot) slots() {
	var turn tree.Turn
	for i := range k.tasks {
		t := &k.tasks[i]
		if !tree.TurnOf(t.t, &turn) {
			continue
		}
		for _, l := range turn.Holds {
			if k.held[l]++; len(k.holders[l]) < mostHolders {
				k.holders[l] = append(k.holders[l], int32(i))
			}
		}
		if turn.At != nil {
			k.queued[turn.At]++
			k.turns[int32(i)] = turn.At
		}
	}
}

// mostHolders is how many holders of a limit are known by name; of a limit with more no ring is found.
const mostHolders = 1024

func (k *knot) need(by int32, w why, needs []bool, alts ...int32) {
	for _, a := range alts {
		if a < 0 {
			return // it is not in the tree: nobody knows what it needs
		}
	}
	if len(alts) == 0 {
		return
	}
	if n := k.g.Need(by, alts...); n != len(k.whys) {
		panic("survey: needs are not numbered in order")
	}
	k.whys = append(k.whys, w)
	needs[by] = true
}

// task notes what task i needs, and that its owner needs it.
func (k *knot) task(i int32, needs []bool) {
	t := &k.tasks[i]
	kind := t.t.Kind
	if t.state == int8(tree.StateDone) || kind == tree.KindHook || kind == tree.KindPromise {
		return // hooks have a limit of their own, and anybody may resolve a promise
	}
	k.awaits(i, needs)
	k.queues(i, needs)
	if kind == tree.KindChoice {
		k.choice(i, needs)
	}
	owner := &k.tasks[t.owner]
	if needs[i] && owner.t.Kind != tree.KindRoot && owner.t.Kind != tree.KindChoice && owner.t.Kind != tree.KindLeft &&
		!t.t.IsDismissible() && !tree.LeftBehind(owner.t) {
		k.need(t.owner, why{kind: needMember}, needs, i)
	}
}

// awaits notes the waits of task i for futures. A future that has settled is about to end the wait.
func (k *knot) awaits(i int32, needs []bool) {
	if b, ok := k.borrowed[i]; ok {
		k.wait(i, b, needs)
	}
	waits := k.waitsIn(k.tasks[i].scope)
	for n := range waits {
		if waits[n].Kind == tree.ForFuture {
			k.wait(i, borrowed{&waits[n], i}, needs)
		}
	}
}

func (k *knot) wait(i int32, b borrowed, needs []bool) {
	if k.tasks[b.of].told != nil && !b.wait.Deaf {
		return
	}
	if on := k.at[b.wait.On]; on >= 0 && k.tasks[on].state != int8(tree.StateDone) {
		k.need(i, why{kind: needFuture, wait: b.wait, of: b.of}, needs, on)
	}
}

// queues notes that task i has not begun, and what it waits for.
func (k *knot) queues(i int32, needs []bool) {
	t := &k.tasks[i]
	if t.state != int8(tree.StateQueued) || t.told != nil {
		return
	}
	if l := k.turns[i]; l != nil {
		if holders := k.holders[l]; len(holders) == k.held[l] && k.isFull(l) && k.keepSlots(holders) {
			k.need(i, why{kind: needSlot, at: l}, needs, holders...)
		}
		return
	}
	p, ok := k.places.of[i]
	if !ok {
		return
	}
	if runs := k.places.runs[p]; k.places.isFull(p) && !slices.Contains(runs, i) {
		k.need(i, why{kind: needTurn, part: p}, needs, runs...)
	}
}

// keepSlots reports whether none of holders can give up its slot by itself: each makes a wait with the context of
// another task. A wait with its own lends the slot, or is about to; and without a wait the handler may return, though
// the task needs what it has started before it settles.
func (k *knot) keepSlots(holders []int32) bool {
	return !slices.ContainsFunc(holders, func(h int32) bool { _, waits := k.borrowed[h]; return !waits })
}

// isFull reports whether all slots of l are held by tasks that are known.
func (k *knot) isFull(l tree.Limiter) bool { return k.held[l] >= l.Size() }

// choice notes what the choice i needs: each of its contenders, if it cannot do without any, else one
// of them.
func (k *knot) choice(i int32, needs []bool) {
	t := &k.tasks[i]
	if t.scope < 0 {
		return
	}
	var all []int32
	for c := k.scopes[t.scope].first; c < k.scopes[t.scope].last; c++ {
		all = append(all, c)
	}
	switch {
	case tree.MayHang(t.t):
		for _, c := range all {
			if needs[c] {
				k.need(i, why{kind: needMember}, needs, c)
			}
		}
	case !startsMore(t.t) && len(all) <= mostHolders:
		k.need(i, why{kind: needChoice}, needs, all...)
	}
}

// startsMore reports whether the choice t may start contenders yet.
func startsMore(t *tree.Task) bool { return t.Self.(interface{ StartsMore() bool }).StartsMore() }

// prove drops all that does not last, and returns the rings that are left.
func (k *knot) prove() []rings.Ring {
	if k.g.Needs() == 0 {
		return nil
	}
	for range mostProofs {
		if k.g.Stuck() == 0 {
			return nil
		}
		if k.allLast() {
			return k.g.Rings()
		}
	}
	return nil
}

// mostProofs is how often needs that were gone may change what is stuck, until there is no ring.
const mostProofs = 8

// allLast looks again at all needs of what is stuck, and drops those that were gone. All that are left
// were seen before the first second look.
func (k *knot) allLast() bool {
	all := true
	for n := range k.g.Needs() {
		if !k.g.IsMet(n) && !k.lasts(n) {
			k.g.Meet(n)
			all = false
		}
	}
	return all
}

// lasts reports whether need n still is what it was.
func (k *knot) lasts(n int) bool {
	by, alts := k.g.By(n), k.g.Alternatives(n)
	w := &k.whys[n]
	t := k.tasks[by].t
	for _, a := range alts {
		if k.tasks[a].t.State.Load() == tree.StateDone {
			return false
		}
	}
	switch w.kind {
	case needFuture:
		return w.wait.Lasts() && (w.wait.Deaf || tree.ToldTo(k.tasks[w.of].t, nil) == nil)
	case needMember:
		return t.State.Load() < tree.StateDone && (t.Kind != tree.KindChoice || tree.MayHang(t))
	case needSlot:
		return k.slotLasts(by, w.at, alts)
	case needTurn:
		return t.State.Load() == tree.StateQueued && !tree.IsDelivered(t) && k.places.lasts(w.part, alts)
	default:
		return t.State.Load() < tree.StateDone && !startsMore(t)
	}
}

// slotLasts reports whether task by still queues at l, and all of holders hold a slot of that.
func (k *knot) slotLasts(by int32, l tree.Limiter, holders []int32) bool {
	var turn tree.Turn
	if !tree.TurnOf(k.tasks[by].t, &turn) || turn.At != l {
		return false
	}
	for _, h := range holders {
		if !tree.TurnOf(k.tasks[h].t, &turn) || !slices.Contains(turn.Holds, l) {
			return false
		}
	}
	return true
}
