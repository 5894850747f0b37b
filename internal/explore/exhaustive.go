package explore

// exhaustive walks through every schedule of one program that preempts at most
// bound times, depth first. To go on with another goroutine than the current
// one, which could go on, is a preemption; so is to let time pass.
//
// Nothing is stored but the path to the schedule under way: each one runs the
// program from the start, makes the decisions of the path, and takes the
// fallback from there on.
type exhaustive struct {
	bound int
	path  []fork
	at    int // the next decision's place in path
	spent int // preemptions in this schedule so far
}

// A fork is a decision that was made: the taken-th of its alternatives.
type fork struct {
	taken, alternatives int
}

// begin readies the first schedule, or the next. It reports false if there is
// none.
func (e *exhaustive) begin() bool {
	if e.at > 0 { // not the first: the deepest fork with an alternative left takes it
		for len(e.path) > 0 && e.path[len(e.path)-1].taken+1 >= e.path[len(e.path)-1].alternatives {
			e.path = e.path[:len(e.path)-1]
		}
		if len(e.path) == 0 {
			return false
		}
		e.path[len(e.path)-1].taken++
	}
	e.at, e.spent = 0, 0
	return true
}

func (e *exhaustive) pick(c *choice) int {
	alternatives := e.alternatives(c)
	if e.at == len(e.path) {
		e.path = append(e.path, fork{0, len(alternatives)})
	}
	i := alternatives[min(e.path[e.at].taken, len(alternatives)-1)]
	e.at++
	if c.current >= 0 && i != c.current || i == letTimePass {
		e.spent++
	}
	return i
}

// alternatives returns what may be picked, the fallback first.
func (e *exhaustive) alternatives(c *choice) []int {
	all := []int{c.fallback()}
	spare := e.spent < e.bound
	if c.current < 0 || spare {
		for i := range c.enabled {
			if i != c.fallback() {
				all = append(all, i)
			}
		}
	}
	if c.tick && spare {
		all = append(all, letTimePass)
	}
	return all
}
