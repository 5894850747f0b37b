// Package rings finds what can never go on, of things that wait for each other.
//
// It is a pure core: a [Graph] is filled with needs, and answers. A need of a node says that the node
// cannot go on before one of the alternatives of the need has. A node without needs can go on. A
// node is stuck if one of its needs is, and a need is stuck if all of its alternatives are: so what
// is stuck is the largest set of nodes of which each has a need that only the set could meet.
//
// A ring is a strong component of what is stuck: its nodes wait for each other. Other nodes that
// are stuck are held up by a ring, and hold up none.
package rings

import "slices"

// A Graph is nodes, which are numbers from 0 on, and their needs. The zero value is empty.
type Graph struct {
	needs []need
	alts  []int32 // the alternatives of all needs
	nodes int
	few   []int32 // by node: how many of its needs are stuck; of what Stuck has found
}

type need struct {
	by       int32
	from, to int32 // its alternatives are alts[from:to]
	met      bool  // one of the alternatives can go on
}

// Need adds that by cannot go on before one of alts has, and returns the number of the need, from 0
// on. A need without alternatives is met.
func (g *Graph) Need(by int32, alts ...int32) int {
	from := int32(len(g.alts))
	g.alts = append(g.alts, alts...)
	g.needs = append(g.needs, need{by, from, int32(len(g.alts)), len(alts) == 0})
	g.nodes = max(g.nodes, int(by)+1)
	for _, n := range alts {
		g.nodes = max(g.nodes, int(n)+1)
	}
	return len(g.needs) - 1
}

// Grow makes room for n needs of one alternative each.
func (g *Graph) Grow(n int) {
	g.needs, g.alts = slices.Grow(g.needs, n), slices.Grow(g.alts, n)
}

// Needs returns how many needs there are.
func (g *Graph) Needs() int { return len(g.needs) }

// Meet says that the need is met: it was none, or has gone.
func (g *Graph) Meet(need int) { g.needs[need].met = true }

// IsMet reports whether a need is met, of what the last Stuck has found.
func (g *Graph) IsMet(need int) bool { return g.needs[need].met }

// Alternatives returns the alternatives of a need.
func (g *Graph) Alternatives(need int) []int32 {
	n := &g.needs[need]
	return g.alts[n.from:n.to]
}

// By returns whose need it is.
func (g *Graph) By(need int) int32 { return g.needs[need].by }

// Stuck finds what cannot go on, and returns how many nodes that are. Needs that are met are found,
// too: see IsMet. The cost is linear.
func (g *Graph) Stuck() int {
	g.few = make([]int32, g.nodes)
	for i := range g.needs {
		if n := &g.needs[i]; !n.met {
			g.few[n.by]++
		}
	}
	first, of := g.needsOn()
	var free []int32
	stuck := 0
	for n, few := range g.few {
		if few == 0 {
			free = append(free, int32(n))
		} else {
			stuck++
		}
	}
	for len(free) > 0 {
		n := free[len(free)-1]
		free = free[:len(free)-1]
		for _, i := range of[first[n]:first[n+1]] {
			need := &g.needs[i]
			if need.met {
				continue
			}
			need.met = true
			if g.few[need.by]--; g.few[need.by] == 0 {
				free = append(free, need.by)
				stuck--
			}
		}
	}
	return stuck
}

// needsOn returns of each node the needs of which it is an alternative: those of node n are
// of[first[n]:first[n+1]].
func (g *Graph) needsOn() (first, of []int32) {
	first = make([]int32, g.nodes+1)
	for _, n := range g.alts {
		first[n+1]++
	}
	for n := range g.nodes {
		first[n+1] += first[n]
	}
	of, at := make([]int32, len(g.alts)), append([]int32(nil), first...)
	for i := range g.needs {
		for _, n := range g.Alternatives(i) {
			of[at[n]] = int32(i)
			at[n]++
		}
	}
	return first, of
}

// IsStuck reports whether node n cannot go on, of what the last Stuck has found.
func (g *Graph) IsStuck(n int32) bool { return int(n) < len(g.few) && g.few[n] > 0 }
