package survey

import (
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file is a picture that is being made of what was seen.

// A drawing is a picture that is being made of what was seen.
type drawing struct {
	*knot
	pic   *picture.Tree
	found []int32 // by problem: the task
}

// id returns the ID of task i; the root has none.
func (d *drawing) id(i int32) picture.ID {
	t := &d.tasks[i]
	switch {
	case t.owner >= 0:
		return picture.ID{Scope: d.number(t.owner), Ordinal: t.ordinal}
	case t.kind == tree.KindRoot:
		return picture.ID{}
	default:
		return picture.ID{Scope: d.pic.Root, Ordinal: t.ordinal}
	}
}

// number returns what the scope of task i is called by.
func (d *drawing) number(i int32) int64 { return tree.NumberOf(d.tasks[i].t.Scope()) }

// show has task i, and what it stands in, be nodes.
func (d *drawing) show(i int32) {
	for ; i >= 0 && !d.tasks[i].shown; i = d.tasks[i].owner {
		d.tasks[i].shown = true
	}
}

// A picture lists so many of each kind at most.
const (
	mostRings    = 32
	mostHeld     = 32
	mostProblems = 32
	newest       = 100
)

// states are those of tasks, as pictures call them.
var states = [...]picture.State{
	picture.StateQueued, picture.StateRunning, picture.StateJoining, picture.StateDone,
}
