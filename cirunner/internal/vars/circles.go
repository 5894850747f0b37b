package vars

// circles gives every variable a number that it shares with those that it leads
// to and that lead back to it: the strongly connected components, by Tarjan.
func circles(vars map[string]string) map[string]int {
	c := walker{vars: vars, entered: map[string]int{}, low: map[string]int{}, circle: map[string]int{}}
	for name := range vars {
		if c.entered[name] == 0 {
			c.walk(name)
		}
	}
	return c.circle
}

type walker struct {
	vars    map[string]string
	entered map[string]int // from 1, in the order of the walk
	low     map[string]int // the first of the open ones that is reached
	open    []string
	circle  map[string]int // of those that are no longer open
}

func (c *walker) walk(name string) {
	n := len(c.entered) + 1
	c.entered[name], c.low[name] = n, n
	c.open = append(c.open, name)
	for _, ref := range references(c.vars[name]) {
		if _, ours := c.vars[ref]; !ours {
			continue
		}
		if c.entered[ref] == 0 {
			c.walk(ref)
			c.low[name] = min(c.low[name], c.low[ref])
		} else if c.circle[ref] == 0 {
			c.low[name] = min(c.low[name], c.entered[ref])
		}
	}
	if c.low[name] != n {
		return
	}
	for i := len(c.open) - 1; ; i-- {
		c.circle[c.open[i]] = n
		if c.open[i] == name {
			c.open = c.open[:i]
			return
		}
	}
}

// references returns the names that s refers to.
func references(s string) []string {
	var names []string
	expand(s, len(s), func(name, written string) string {
		names = append(names, name)
		return ""
	})
	return names
}
