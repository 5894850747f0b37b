package survey

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/look"
	"github.com/ambit-go/ambit/async/internal/rings"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file finds rings of waits. The needs of a task before it can settle are noted as they were seen;
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
	on   int32 // of needFuture: an index of waits; of needTurn: one of parts
	of   int32 // of needFuture: with whose context it waits
}

// A knot is what waits for what.
type knot struct {
	*survey
	g    rings.Graph
	whys []why  // by the number of the need
	may  []bool // by task: whether it can have a need
	on   *awaited
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
	wait int32 // an index of waits
	of   int32 // whose context it is
}

// knot notes who holds slots, and what other packages show.
func (s *survey) knot() *knot {
	k := &knot{survey: s, on: s.awaited(), turns: make(map[int32]tree.Limiter)}
	k.holders, k.held = make(map[tree.Limiter][]int32), make(map[tree.Limiter]int)
	k.queued, k.borrowed = make(map[tree.Limiter]int), make(map[int32]borrowed)
	k.places = s.placesOf()
	k.slots()
	return k
}

// find notes what waits for what.
func (k *knot) find() {
	if !k.waiting {
		return
	}
	// Tasks further from the root come first: so it is known of each task whether it needs anything
	// when its owner comes.
	needs := make([]bool, len(k.tasks))
	if k.may = k.mayNeed(); k.may == nil {
		return
	}
	for i := len(k.tasks) - 1; i > 0; i-- {
		if k.may[i] {
			k.task(int32(i), needs)
		}
	}
}

// mayNeed returns of each task whether it can have a need, by what it is alone: most waits are for tasks
// that just run, and no need comes of those. It returns nil if there is none at all.
func (k *knot) mayNeed() []bool {
	may, any := make([]bool, len(k.tasks)), len(k.borrowed) > 0
	for i := len(k.tasks) - 1; i > 0; i-- {
		t := &k.tasks[i]
		if t.state == int8(tree.StateQueued) || t.kind == tree.KindChoice {
			may[i], any = true, true
		} else if t.scope >= 0 && k.scopes[t.scope].awaits {
			may[i] = true
		} else if _, borrows := k.borrowed[int32(i)]; borrows {
			may[i] = true
		}
		may[t.owner] = may[t.owner] || may[i]
	}
	if !any && !slices.ContainsFunc(k.on.tasks, func(on int32) bool { return on >= 0 && may[on] }) {
		return nil
	}
	return may
}

// slots notes who holds slots of limits, and who queues.
func (k *knot) slots() {
	var turn tree.Turn
	for i := range k.tasks {
		t := &k.tasks[i]
		if !t.special || !tree.TurnOf(t.t, &turn) {
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
	kind := t.kind
	if t.state == int8(tree.StateDone) || kind == tree.KindHook || kind == tree.KindPromise {
		return // hooks have a limit of their own, and anybody may resolve a promise
	}
	k.awaits(i, needs)
	k.queues(i, needs)
	if kind == tree.KindChoice {
		k.choice(i, needs)
	}
	owner := &k.tasks[t.owner]
	if needs[i] && owner.kind != tree.KindRoot && owner.kind != tree.KindChoice && owner.kind != tree.KindLeft &&
		!t.excused && !tree.LeftBehind(owner.t) {
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
			k.wait(i, borrowed{k.scopes[k.tasks[i].scope].wait + int32(n), i}, needs)
		}
	}
}

func (k *knot) wait(i int32, b borrowed, needs []bool) {
	w := &k.waits[b.wait]
	if k.tasks[b.of].told != nil && !w.Deaf {
		return
	}
	if on := k.on.by(b.wait); on >= 0 && k.may[on] && k.tasks[on].state != int8(tree.StateDone) {
		k.need(i, why{needFuture, b.wait, b.of}, needs, on)
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
			k.need(i, why{kind: needSlot}, needs, holders...)
		}
		return
	}
	p, ok := k.places.of[i]
	if !ok {
		return
	}
	if runs := k.places.runs[p]; k.places.isFull(p) && !slices.Contains(runs, i) {
		k.need(i, why{kind: needTurn, on: int32(p)}, needs, runs...)
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
	sc := &k.scopes[t.scope]
	var all []int32
	for c := sc.first; c < sc.last; c++ {
		all = append(all, c)
	}
	switch {
	case tree.MayHang(t.t):
		for _, c := range all {
			if needs[c] {
				k.need(i, why{kind: needMember}, needs, c)
			}
		}
	case sc.started == contenders(t.t) && len(all) <= mostHolders: // no other can decide it
		k.need(i, why{kind: needChoice}, needs, all...)
	}
}

// contenders returns how many contenders the choice t will have started.
func contenders(t *tree.Task) int64 {
	return int64(t.Self.(interface{ Contenders() int }).Contenders())
}

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
		wait := &k.waits[w.on]
		return wait.Lasts() && (wait.Deaf || tree.ToldTo(k.tasks[w.of].t, nil) == nil)
	case needMember:
		return t.State.Load() < tree.StateDone && (t.Kind != tree.KindChoice || tree.MayHang(t))
	case needSlot:
		return k.slotLasts(by, k.turns[by], alts)
	case needTurn:
		return t.State.Load() == tree.StateQueued && !tree.IsDelivered(t) && k.places.lasts(int(w.on), alts)
	default:
		return t.State.Load() < tree.StateDone
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
