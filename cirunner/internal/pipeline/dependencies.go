package pipeline

import "slices"

func readDependencies(p *parser, d *draft, n *node) {
	d.hasFetch = true
	d.fetch = p.list("dependencies", n)
}

// dependencies returns the jobs that dependencies names, of those that a job
// waits for.
func (g *grapher) dependencies(d *draft, waits map[*Job]bool) map[*Job]bool {
	fetch := make(map[*Job]bool)
	for _, n := range d.fetch {
		_, jobs := g.find(n.text)
		for _, job := range jobs {
			fetch[job] = waits[job]
		}
	}
	return fetch
}

// checkDependencies reports names that dependencies cannot have. One of the same
// stage is allowed, but nothing waits for it: it brings no artifacts.
func (g *grapher) checkDependencies(d *draft) {
	for _, n := range d.fetch {
		to, _ := g.find(n.text)
		needed := slices.ContainsFunc(d.needs, func(need needed) bool { return need.name == n.text })
		switch {
		case to == nil:
			g.errorf(n.at, "%s depends on %s, which is not in the file%s", quote(d.key), quote(n.text),
				g.didYouMean(n.text, sortedKeys(g.drafts)))
		case needed || g.stage(to) < 0 || g.stage(d) < 0:
		case d.hasNeeds:
			g.errorf(n.at, "%s depends on %s, but does not wait for it: it should be among its needs", quote(d.key), quote(n.text))
		case g.stage(to) > g.stage(d):
			g.errorf(n.at, "%s depends on %s, but does not wait for it: it should be in an earlier stage", quote(d.key), quote(n.text))
		case g.stage(to) == g.stage(d):
			g.warn(n.at, "dependencies of the same stage", "nothing waits for %s, so that its artifacts do not come; name it in needs", quote(n.text))
		}
	}
}
