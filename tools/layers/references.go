package main

import (
	"cmp"
	"go/types"
	"maps"
	"slices"
)

// A reference says that a file uses what another one declares: types,
// functions, methods, fields, variables and constants.
type reference struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Names []string `json:"names"` // what is used
}

// A graph has the references from file to file. A file has none to itself.
type graph struct {
	files []string // sorted
	to    map[string]map[string]map[string]bool
}

// references finds which file uses what of which other.
func references(h *house) *graph {
	g := &graph{to: map[string]map[string]map[string]bool{}}
	for _, f := range h.structure() {
		g.files = append(g.files, f.name)
		g.to[f.name] = map[string]map[string]bool{}
	}
	for _, pkg := range h.packages {
		for ident, used := range pkg.TypesInfo.Uses {
			from, to := h.fileOf(ident.Pos()), h.fileOf(used.Pos())
			if from == nil || to == nil || from == to || !from.counted() || !to.counted() {
				continue
			}
			g.add(from.name, to.name, origin(used).Name())
		}
	}
	return g
}

// origin is the declared object of which used is an instance.
func origin(used types.Object) types.Object {
	switch used := used.(type) {
	case *types.Func:
		return used.Origin()
	case *types.Var:
		return used.Origin()
	}
	return used
}

func (g *graph) add(from, to, name string) {
	names := g.to[from][to]
	if names == nil {
		names = map[string]bool{}
		g.to[from][to] = names
	}
	names[name] = true
}

// all lists the references, sorted.
func (g *graph) all() []reference {
	var all []reference
	for _, from := range g.files {
		for _, to := range slices.Sorted(maps.Keys(g.to[from])) {
			all = append(all, reference{from, to, slices.Sorted(maps.Keys(g.to[from][to]))})
		}
	}
	return all
}

// pairs lists the files that refer to each other.
func (g *graph) pairs() [][2]string {
	var pairs [][2]string
	for _, r := range g.all() {
		if r.From < r.To && g.to[r.To][r.From] != nil {
			pairs = append(pairs, [2]string{r.From, r.To})
		}
	}
	return pairs
}

// knots lists the strongly connected components that have more than one file,
// the largest first: from each file of a knot every other can be reached.
func (g *graph) knots() [][]string {
	k := &knotter{graph: g, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, f := range g.files {
		if k.index[f] == 0 {
			k.visit(f)
		}
	}
	slices.SortStableFunc(k.knots, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return k.knots
}

// A knotter is the search of Tarjan, "Depth-first search and linear graph
// algorithms", 1972.
type knotter struct {
	*graph
	index, low map[string]int // from 1, in the order of visits
	open       map[string]bool
	stack      []string // the open files
	knots      [][]string
}

func (k *knotter) visit(f string) {
	k.index[f] = len(k.index) + 1
	k.low[f] = k.index[f]
	k.stack = append(k.stack, f)
	k.open[f] = true
	for _, to := range slices.Sorted(maps.Keys(k.to[f])) {
		switch {
		case k.index[to] == 0:
			k.visit(to)
			k.low[f] = min(k.low[f], k.low[to])
		case k.open[to]:
			k.low[f] = min(k.low[f], k.index[to])
		}
	}
	if k.low[f] == k.index[f] {
		k.pop(f)
	}
}

// pop closes the component that was entered by f.
func (k *knotter) pop(f string) {
	i := slices.Index(k.stack, f)
	knot := slices.Sorted(slices.Values(k.stack[i:]))
	k.stack = k.stack[:i]
	for _, member := range knot {
		delete(k.open, member)
	}
	if len(knot) > 1 {
		k.knots = append(k.knots, knot)
	}
}
