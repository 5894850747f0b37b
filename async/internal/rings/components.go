package rings

import (
	"cmp"
	"slices"
)

// A Step is one wait of a ring: a need, and which of its alternatives the ring goes on with.
type Step struct {
	Need int
	On   int32
}

// A Ring is nodes that wait for each other.
type Ring struct {
	Nodes []int32 // all of them, the smallest first
	Steps []Step  // one way round, as short as any from the first node, which it begins with
}

// Rings returns the rings of what the last Stuck has found, ordered by their first nodes.
func (g *Graph) Rings() []Ring {
	c := components{
		g: g, out: g.edges(), low: make([]int32, g.nodes), index: make([]int32, g.nodes), on: make([]bool, g.nodes),
	}
	for n := range int32(g.nodes) {
		if g.IsStuck(n) && c.index[n] == 0 {
			c.from(n)
		}
	}
	return c.rings()
}

// edges returns of each node that is stuck the needs that are.
func (g *Graph) edges() [][]int32 {
	out := make([][]int32, g.nodes)
	for i := range g.needs {
		if n := &g.needs[i]; !n.met {
			out[n.by] = append(out[n.by], int32(i))
		}
	}
	return out
}

// components finds strong components as Tarjan does, without recursion: a chain of waits may be long.
type components struct {
	g     *Graph
	out   [][]int32
	index []int32 // in the order of the visits, from 1 on; 0: not visited
	low   []int32
	on    []bool // on the stack
	count int32
	stack []int32
	todo  []visit
	found [][]int32
}

// A visit is a node whose edges are being followed: as far as edge, of its needs and alternatives.
type visit struct {
	node, need, alt int32
}

// from visits all that can be reached from n.
func (c *components) from(n int32) {
	c.enter(n)
	for len(c.todo) > 0 {
		v := &c.todo[len(c.todo)-1]
		next, ok := c.next(v)
		switch {
		case !ok:
			c.leave(v.node)
		case c.index[next] == 0:
			c.enter(next)
		case c.on[next]:
			c.low[v.node] = min(c.low[v.node], c.index[next])
		}
	}
}

func (c *components) enter(n int32) {
	c.count++
	c.index[n], c.low[n], c.on[n] = c.count, c.count, true
	c.stack, c.todo = append(c.stack, n), append(c.todo, visit{node: n})
}

// next returns the node to which the next edge of v leads.
func (c *components) next(v *visit) (n int32, ok bool) {
	for ; int(v.need) < len(c.out[v.node]); v.need, v.alt = v.need+1, 0 {
		if alts := c.g.Alternatives(int(c.out[v.node][v.need])); int(v.alt) < len(alts) {
			v.alt++
			return alts[v.alt-1], true
		}
	}
	return 0, false
}

// leave is called when all edges of n were followed.
func (c *components) leave(n int32) {
	c.todo = c.todo[:len(c.todo)-1]
	if k := len(c.todo); k > 0 {
		around := c.todo[k-1].node
		c.low[around] = min(c.low[around], c.low[n])
	}
	if c.low[n] != c.index[n] {
		return
	}
	i := len(c.stack) - 1
	for c.stack[i] != n {
		i--
	}
	all := slices.Clone(c.stack[i:])
	c.stack = c.stack[:i]
	for _, n := range all {
		c.on[n] = false
	}
	slices.Sort(all)
	c.found = append(c.found, all)
}

// rings returns those components that are rings.
func (c *components) rings() (rings []Ring) {
	for _, all := range c.found {
		if steps := c.wayRound(all); steps != nil {
			rings = append(rings, Ring{all, steps})
		}
	}
	slices.SortFunc(rings, func(a, b Ring) int { return cmp.Compare(a.Nodes[0], b.Nodes[0]) })
	return rings
}

// wayRound returns a shortest way from the first node of all back to it, nil if there is none.
func (c *components) wayRound(all []int32) []Step {
	start := all[0]
	came := map[int32]Step{} // by node: the step that came to it
	for todo := []int32{start}; len(todo) > 0; todo = todo[1:] {
		for _, i := range c.out[todo[0]] {
			for _, n := range c.g.Alternatives(int(i)) {
				if _, inside := slices.BinarySearch(all, n); !inside {
					continue
				}
				if _, before := came[n]; before {
					continue
				}
				came[n] = Step{int(i), n}
				if n == start {
					return c.back(came, start)
				}
				todo = append(todo, n)
			}
		}
	}
	return nil
}

// back returns the steps by which the way has come to start, the first step first.
func (c *components) back(came map[int32]Step, start int32) (steps []Step) {
	for n := start; ; {
		step := came[n]
		steps = append(steps, step)
		if n = c.g.By(step.Need); n == start {
			slices.Reverse(steps)
			return steps
		}
	}
}
