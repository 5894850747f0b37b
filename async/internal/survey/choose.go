package survey

import (
	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/async/picture"
)

// This file chooses which tasks are nodes, and counts the others.

// choose says which tasks are to be nodes, beside those with a problem: what is nearer to the root
// comes first, and of many in one scope the oldest and some of the newest.
func (d *drawing) choose() {
	d.show(0)
	room := d.AtMost
	for i := range d.tasks {
		if d.tasks[i].shown {
			room--
		}
	}
	for i := range d.scopes {
		sc := &d.scopes[i]
		n := int(sc.last - sc.first)
		if n == 0 || room <= 0 || !d.tasks[d.tasks[sc.first].owner].shown {
			continue
		}
		end := 0
		if most := max(room/2, 2*newest); n > most {
			n, end = most, newest
		}
		for j := sc.first; j < sc.last && room > 0; j++ {
			oldest := int(j-sc.first) < n-end
			if t := &d.tasks[j]; !t.shown && (oldest || int(sc.last-j) <= end) {
				t.shown = true
				room--
			}
		}
	}
}

// nodes draws the nodes that were chosen, owners before what they own.
func (d *drawing) nodes() {
	var todo []int32
	if d.tasks[0].kind == tree.KindRoot {
		todo = d.inside(0, todo)
	} else {
		todo = append(todo, 0)
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d.pic.Nodes = append(d.pic.Nodes, d.node(i))
		todo = d.inside(i, todo)
	}
}

// inside adds to todo the nodes in task i, the oldest last.
func (d *drawing) inside(i int32, todo []int32) []int32 {
	t := &d.tasks[i]
	if t.scope < 0 {
		return todo
	}
	sc := &d.scopes[t.scope]
	for j := sc.last - 1; j >= sc.first; j-- {
		if d.tasks[j].shown {
			todo = append(todo, j)
		}
	}
	return todo
}

// groups counts the tasks that are no nodes, under the nearest node around them.
func (d *drawing) groups() {
	around := make([]int32, len(d.tasks)) // the nearest node that each task is, or is in
	type key struct {
		owner int32
		alike string
		kind  tree.Kind
		state int8
		told  bool
	}
	at := make(map[key]int)
	var last key // most often the next is like the one before
	n := -1
	for i := range d.tasks {
		t := &d.tasks[i]
		if around[i] = int32(i); t.shown || i == 0 {
			continue
		}
		around[i] = around[t.owner]
		d.pic.Cut.Grouped++
		k := key{around[i], d.names.all[t.name].alike, t.kind, t.state, t.told != nil}
		if len(at) >= mostGroups {
			k.alike = "and others"
		}
		if n >= 0 && k == last {
			d.pic.Groups[n].Count++
			continue
		}
		last = k
		var ok bool
		if n, ok = at[k]; !ok {
			n = len(d.pic.Groups)
			at[k] = n
			d.pic.Groups = append(d.pic.Groups, picture.Group{
				Owner: d.id(k.owner), Name: k.alike, Kind: picture.Kind(k.kind.String()), State: states[k.state+1],
				Told: k.told,
			})
		}
		d.pic.Groups[n].Count++
	}
}

// mostGroups bounds the groups that are told apart by the names of their tasks.
const mostGroups = 1000
