package survey

import (
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file draws what is wrong: rings, and what else a person would look at first.

// rings draws the rings.
func (d *drawing) rings() {
	rings := d.prove()
	inRing := make(map[int32]bool)
	for _, r := range rings {
		for _, n := range r.Nodes {
			inRing[n] = true
		}
	}
	for n, r := range rings {
		if n == mostRings {
			d.pic.Cut.Problems += len(rings) - n
			break
		}
		one := picture.Ring{Size: len(r.Nodes)}
		for _, step := range r.Steps {
			w := &d.whys[step.Need]
			by := d.g.By(step.Need)
			d.show(by)
			wait := picture.RingWait{By: d.id(by), How: ways[w.kind], On: d.id(step.On)}
			switch {
			case w.kind == needTurn:
				wait.Part = int(w.on) + 1
			case d.tasks[by].kind == tree.KindChoice:
				wait.How = picture.WayChoice
			}
			one.Waits = append(one.Waits, wait)
			if w.kind == needFuture {
				if left := d.waits[w.on].Left; left > 0 && (one.Breaks == 0 || left < one.Breaks) {
					one.Breaks = left
				}
			}
		}
		d.pic.Rings = append(d.pic.Rings, one)
	}
	if len(rings) > 0 {
		d.heldUp(inRing)
	}
}

var ways = [...]picture.Way{
	needFuture: picture.WayAwait, needMember: picture.WayJoin, needSlot: picture.WayLimit,
	needTurn: picture.WayPart, needChoice: picture.WayChoice,
}

// heldUp notes with the first ring what is stuck because of the rings.
func (d *drawing) heldUp(inRing map[int32]bool) {
	first := &d.pic.Rings[0]
	for i := range int32(len(d.tasks)) {
		switch {
		case !d.g.IsStuck(i) || inRing[i]:
		case len(first.HoldsUp) < mostHeld:
			d.show(i)
			first.HoldsUp = append(first.HoldsUp, d.id(i))
		default:
			first.MoreUp++
		}
	}
}

// problems notes what else a person would look at first.
func (d *drawing) problems() {
	kinds := [...]struct {
		kind picture.ProblemKind
		is   func(i int32) bool
	}{
		{picture.ProblemStraggler, d.isStraggler}, {picture.ProblemFull, d.isFullLimit},
		{picture.ProblemRestarts, d.isRestarted}, {picture.ProblemUnclaimed, d.hasUnclaimed},
	}
	suspects := d.suspects()
	for _, k := range kinds {
		found := 0
		for _, i := range suspects {
			if !k.is(i) {
				continue
			}
			if found++; found > mostProblems {
				d.pic.Cut.Problems++
				continue
			}
			d.show(i)
			d.found = append(d.found, i)
			d.pic.Problems = append(d.pic.Problems, picture.Problem{Kind: k.kind, Node: d.id(i)})
		}
	}
}

// suspects returns the tasks that can have a problem, by what they are alone.
func (d *drawing) suspects() (all []int32) {
	for i := range d.tasks {
		t := &d.tasks[i]
		if t.kind != tree.KindRoot && (t.told != nil || t.special || t.scope >= 0 && d.scopes[t.scope].isSuspect()) {
			all = append(all, int32(i))
		}
	}
	return all
}

func (sc *scope) isSuspect() bool { return sc.limits || sc.unclaimed > 0 }

func (d *drawing) isFullLimit(i int32) bool {
	l := d.limit(i)
	return l != nil && l.Queued > 0 && l.Held >= l.Slots
}

func (d *drawing) isRestarted(i int32) bool {
	r := d.restart(i)
	return r != nil && r.Failures > 1
}

func (d *drawing) hasUnclaimed(i int32) bool {
	t := &d.tasks[i]
	return t.scope >= 0 && d.scopes[t.scope].unclaimed > 0
}
