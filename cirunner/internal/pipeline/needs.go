package pipeline

// maxNeeds is how many entries needs may have, as in GitLab.
const maxNeeds = 50

// A needed is an entry of needs, by name.
type needed struct {
	name                string
	artifacts, optional bool
	cells               []cell // of parallel:matrix; nil for all parts
	at                  mark
}

func readNeeds(p *parser, d *draft, n *node) {
	d.hasNeeds = true
	items, ok := flat(n, 0, nil)
	if !ok {
		p.errorf(n.at, "needs has lists in lists more than %d deep, or too many of them", maxNesting)
		return
	}
	if len(items) > maxNeeds {
		p.errorf(n.at, "needs has %d jobs: it may have %d", len(items), maxNeeds)
		return
	}
	seen := make(map[string]bool)
	for _, item := range items {
		need, ok := p.need(item)
		switch {
		case !ok:
		case seen[need.name] && need.cells == nil:
			p.errorf(item.at, "needs names %s twice", quote(need.name))
		default:
			seen[need.name] = true
			d.needs = append(d.needs, need)
		}
	}
}

// flat returns the entries of a list in which there may be lists, as !reference makes
// them. It gives up when they are too deep, or more than anybody needs.
func flat(n *node, depth int, all []*node) (items []*node, ok bool) {
	if n.kind != list {
		return append(all, n), true
	}
	ok = depth <= maxNesting
	for i := 0; ok && i < len(n.items); i++ {
		all, ok = flat(n.items[i], depth+1, all)
		ok = ok && len(all) <= maxItems
	}
	return all, ok
}

func (p *parser) need(n *node) (needed, bool) {
	need := needed{artifacts: true, at: n.at}
	if n.kind != mapping {
		var ok bool
		if n.kind == null || n.kind == boolean {
			p.should("needs", n, "a list of jobs, each a name, or a mapping of job, artifacts and optional")
			return need, false
		}
		need.name, ok = p.string("needs", n)
		return need, ok
	}
	ok := p.fields("needs", n, keys{
		"job":       func(n *node) { need.name, _ = p.string("needs:job", n); need.at = n.at },
		"artifacts": func(n *node) { need.artifacts, _ = p.boolean("needs:artifacts", n) },
		"optional":  func(n *node) { need.optional, _ = p.boolean("needs:optional", n) },
		"parallel": func(n *node) {
			p.fields("needs:parallel", n, keys{
				"matrix": func(n *node) { need.cells = p.matrix("needs:parallel:matrix", n) },
			}, nil)
			if n.kind == mapping && !n.has("matrix") {
				p.errorf(n.at, "needs:parallel should have a matrix: the parts that are needed")
			}
		},
	}, ignoredInNeeds)
	if n.has("pipeline") || n.has("project") {
		return need, false // ignored
	}
	if ok && !n.has("job") && !n.has("pipeline") && !n.has("project") {
		p.errorf(n.at, "needs should name a job here")
	}
	return need, ok && need.name != ""
}
