package asyncz

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async/picture"
)

// This file chooses the rows of the tree: which tasks, in which order, folded or not.

// mostRows bounds one document.
const mostRows = 2000

// mostSaved bounds one that is to be kept as a file.
const mostSaved = 5000

// mostDepth is how deep rows are nested, for browsers have a limit; deeper ones follow each other.
const mostDepth = 40

// small is how many tasks are shown unfolded at first sight.
const small = 200

// A row is one task, several that are alike, a part, or a group of tasks that are not shown each for itself.
type row struct {
	Key   string // tells it from the others, also when the page is renewed
	Value string // changes when the row has
	*cells
	Inside []*row
	Open   bool
	More   string // the address at which what is folded is shown; "": nothing is
	Folded int    // so many members are folded
	Depth  int
	after  []*row // rows inside that are too deep to be nested
}

// cells are what is written in a row.
type cells struct {
	Name, ID, Kind, State, Age, Place string
	Count                             int // alike tasks; 0: it is one
	Alike                             string
	Waits                             []waitCell
	Remarks                           []string
	Marks                             []markCell
	Told, Dim, Found                  bool
}

// A waitCell is one wait: text, and a link to the task that is waited for.
// Age is how long it has lasted at least.
type waitCell struct{ Text, On, Link, After, Age string }

// A markCell says that a task has a problem.
type markCell struct{ Sign, Text string }

// A chooser chooses rows.
type chooser struct {
	*view
	q     *query
	known known
	keep  map[picture.ID]bool // tasks that the filter has found, or that have such in them; nil: no filter
	found map[picture.ID]bool
	ways  map[picture.ID]bool // tasks with a problem in them
	room  int
	shown int // how many tasks are in rows
	cut   int // members that found no room
}

// rows returns the rows of the tree that q asks for.
func (v *view) rows(q *query, k known, room int) (*chooser, []*row) {
	c := &chooser{view: v, q: q, known: k, room: room, ways: make(map[picture.ID]bool)}
	for id := range v.wrong {
		c.up(c.ways, id)
	}
	if q.Filters() {
		c.keep, c.found = make(map[picture.ID]bool), make(map[picture.ID]bool)
		for i := range v.pic.Nodes {
			if n := &v.pic.Nodes[i]; c.matches(n) {
				c.found[n.ID] = true
				c.up(c.keep, n.ID)
			}
		}
	}
	top, _ := v.top(q)
	return c, c.list(top, 0, v.pic.Root, picture.ID{}, q.Under == "")
}

// up notes id, and all that it stands in.
func (c *chooser) up(in map[picture.ID]bool, id picture.ID) {
	for !in[id] {
		in[id] = true
		above, ok := c.owner[id.Scope]
		if !ok {
			return
		}
		id = above
	}
}

func (c *chooser) matches(n *picture.Node) bool {
	q := c.q
	if q.ID != "" {
		return n.ID.String() == q.ID
	}
	if q.Name != "" && !strings.Contains(strings.ToLower("#"+n.ID.String()+" "+n.Name+" "+n.Place), q.Name) {
		return false
	}
	if q.Problem != "" && !slices.Contains(c.wrong[n.ID], q.Problem) {
		return false
	}
	switch q.State {
	case "":
		return true
	case "told":
		return n.Told != nil
	case "waiting":
		return len(n.Waits) > 0 && n.Waits[0].How != picture.WayJoin
	default:
		return string(n.State) == q.State
	}
}

// list returns rows for members of the scope with that number, with its parts and groups.
func (c *chooser) list(all []*picture.Node, depth int, scope int64, owner picture.ID, whole bool) (rows []*row) {
	if whole && c.keep == nil {
		rows = c.parts(scope, depth)
	}
	if c.keep != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(n *picture.Node) bool { return !c.keep[n.ID] })
	}
	alike := make(map[string]*row)
	for _, n := range c.sorted(all) {
		if c.room <= 0 {
			c.cut++
		} else if r := c.one(n, depth, alike); r != nil {
			rows = append(append(rows, r), r.after...)
			r.after = nil
		}
	}
	for _, r := range rows {
		if r.Count > 1 && !c.q.Saved {
			r.Alike = c.q.With("alike", "1")
			if owner != (picture.ID{}) {
				r.Alike = c.q.With("alike", "1", "under", owner.String())
			}
		}
		if r.Value == "" { // else it came from deeper down
			r.Value = r.hash()
		}
	}
	if whole && c.keep == nil {
		rows = append(rows, c.groupRows(owner, depth)...)
	}
	return rows
}

// one returns the row of n, nil if n is counted in a row that is there.
func (c *chooser) one(n *picture.Node, depth int, alike map[string]*row) *row {
	inside := c.in[n.Scope]
	if n.Scope == 0 {
		inside = nil
	}
	r := &row{Key: n.ID.String(), cells: c.cells(n), Depth: min(depth, 12)}
	c.shown++
	if len(inside) == 0 && len(c.groups[n.ID]) == 0 && len(r.Marks) == 0 && !c.q.Alike {
		key := r.alikeKey()
		if first := alike[key]; first != nil {
			first.Count++
			return nil
		}
		alike[key], r.Count = r, 1
	}
	c.room--
	members := len(inside)
	for _, g := range c.groups[n.ID] {
		members += g.Count
	}
	if members == 0 && !c.hasParts(n.Scope) {
		return r
	}
	if r.Open = c.isOpen(n, depth); r.Open {
		r.Inside = c.list(inside, depth+1, n.Scope, n.ID, true)
		if depth >= mostDepth {
			r.after, r.Inside = r.Inside, nil
		}
	} else {
		r.Folded, r.More = members, c.q.opening(r.Key)
		c.shown += len(inside)
	}
	return r
}

// isOpen: two levels are, every way to a problem, what was asked for, and all of a small tree.
func (c *chooser) isOpen(n *picture.Node, depth int) bool {
	id := n.ID.String()
	asked := c.q.OpenAll || c.q.Open[id] || c.q.Under == id || c.keep != nil && !c.found[n.ID]
	return depth < 2 || len(c.pic.Nodes) <= small || c.ways[n.ID] || asked
}

func (c *chooser) hasParts(scope int64) bool {
	return scope != 0 && slices.ContainsFunc(c.pic.Parts, func(p picture.Part) bool { return p.Scope == scope })
}

// sorted returns all in the order that was asked for; they come with the oldest first.
func (c *chooser) sorted(all []*picture.Node) []*picture.Node {
	all = slices.Clone(all)
	switch c.q.Sort {
	case "newest":
		slices.Reverse(all)
	case "name":
		slices.SortStableFunc(all, func(a, b *picture.Node) int { return cmp.Compare(a.Name, b.Name) })
	case "live":
		slices.SortStableFunc(all, func(a, b *picture.Node) int { return cmp.Compare(b.Live, a.Live) })
	}
	return all
}

// parts returns the rows of parts that stand in a scope.
func (c *chooser) parts(scope int64, depth int) (rows []*row) {
	for i := range c.pic.Parts {
		p := &c.pic.Parts[i]
		if p.Scope != scope || p.Scope == 0 || c.room <= 0 {
			continue
		}
		c.room--
		cell := &cells{Name: c.part(i + 1), Kind: "part", State: "idle"}
		if p.Active > 0 {
			cell.State = "busy"
		}
		if len(p.Runs) > 0 {
			cell.Waits = append(cell.Waits, c.link("runs ", p.Runs[0], ""))
		}
		if p.Queued > 0 {
			cell.Remarks = append(cell.Remarks, count(p.Queued)+" queued")
		}
		if p.State != "" {
			cell.Remarks = append(cell.Remarks, clean(p.State))
		}
		r := &row{Key: fmt.Sprintf("part%d.%s", scope, cell.Name), cells: cell, Depth: min(depth, 12)}
		rows = append(rows, r)
	}
	return rows
}

// groupRows returns the rows of tasks that the picture has only counted.
func (c *chooser) groupRows(owner picture.ID, depth int) (rows []*row) {
	for _, g := range c.groups[owner] {
		if c.room <= 0 {
			c.cut += g.Count
			continue
		}
		c.room--
		cell := &cells{Name: clean(g.Name), Kind: string(g.Kind), State: string(g.State), Count: g.Count, Dim: true,
			Remarks: []string{"not shown each"}, Told: g.Told}
		r := &row{Key: fmt.Sprintf("group%v.%s.%s.%s.%v", owner, cell.Name, g.Kind, g.State, g.Told), cells: cell}
		r.Depth, r.Value = min(depth, 12), r.hash()
		rows = append(rows, r)
	}
	return rows
}

// alikeKey is equal for tasks that are alike: all but IDs, ages and digits of names is the same.
func (c *cells) alikeKey() string {
	name := picture.Alike(c.Name)
	waits := slices.Clone(c.Waits)
	for i := range waits {
		waits[i].Age = ""
	}
	return fmt.Sprintf("%q %q %q %q %v %q %q", name, c.Kind, c.State, c.Place, c.Told, waits, c.Remarks)
}

// hash returns what changes when anything that is written in the row does.
func (r *row) hash() string {
	return fmt.Sprintf("%x", hashOf(fmt.Sprintf("%+v %v %v", *r.cells, r.Folded, r.Open)))
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
