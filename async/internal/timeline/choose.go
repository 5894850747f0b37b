package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file chooses the tasks that have a row, and orders them.

// choose returns the tasks that have a row: those with a problem, what lives, failures, the longest and the newest.
func choose(tasks []Task, now time.Time, most int) []*Task {
	all := make([]*Task, len(tasks))
	for i := range tasks {
		all[i] = &tasks[i]
	}
	if len(all) <= most {
		return all
	}
	rank := func(t *Task) int {
		switch {
		case t.First:
			return 0
		case t.Ended.IsZero():
			return 1
		case !good[t.Outcome]:
			return 2
		default:
			return 3
		}
	}
	length := func(t *Task) time.Duration {
		switch {
		case t.Begun.IsZero():
			return 0
		case t.Ended.IsZero():
			return now.Sub(t.Begun)
		default:
			return t.Ended.Sub(t.Begun)
		}
	}
	slices.SortStableFunc(all, func(a, b *Task) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(length(b), length(a))) })
	long := most * 3 / 4
	newest := slices.Clone(all[long:])
	slices.SortStableFunc(newest, func(a, b *Task) int { return b.Begun.Compare(a.Begun) })
	return append(all[:long:long], newest[:most-long]...)
}

var good = map[string]bool{"ok": true, "cancelled": true, "skipped": true}

type nested struct {
	task  *Task
	depth int
}

// mostDepth is how deep names are indented.
const mostDepth = 8

// nest orders tasks: each below its owner if that has a row, else by its begin.
func nest(tasks []*Task) (out []nested) {
	slices.SortStableFunc(tasks, func(a, b *Task) int {
		return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.ID.Scope, b.ID.Scope), cmp.Compare(a.ID.Ordinal, b.ID.Ordinal))
	})
	there, in := make(map[picture.ID]bool), make(map[picture.ID][]*Task)
	for _, t := range tasks {
		there[t.ID] = true
	}
	var tops []*Task
	for _, t := range tasks {
		if t.Owner != t.ID && there[t.Owner] {
			in[t.Owner] = append(in[t.Owner], t)
		} else {
			tops = append(tops, t)
		}
	}
	todo := make([]nested, 0, len(tasks))
	push := func(all []*Task, depth int) {
		for _, t := range slices.Backward(all) {
			todo = append(todo, nested{t, min(depth, mostDepth)})
		}
	}
	push(tops, 0)
	for len(todo) > 0 { // not recursive: a tree may be deep
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		out = append(out, last)
		inside := in[last.task.ID]
		delete(in, last.task.ID) // one that is there twice, as workers with many items are, has it once
		push(inside, last.depth+1)
	}
	return out
}
