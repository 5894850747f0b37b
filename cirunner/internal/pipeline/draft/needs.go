package draft

import (
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// MaxNeeds is how many entries needs may have, as in GitLab.
const MaxNeeds = 50

// A Needed is an entry of needs, by name.
type Needed struct {
	Name                string
	Artifacts, Optional bool
	Upstream            bool   // it is a job of the pipeline that has started this one
	Cells               []cell // of parallel:matrix; nil for all parts
	At                  tree.Mark
	ofPart              bool // Cells are those of one part of the job
}

// Wants reports whether a part of the needed job is among those that are needed.
func (n Needed) Wants(job *pipeline.Job) bool {
	return n.Cells == nil || slices.ContainsFunc(n.Cells, cell(job.Cell).Has)
}

// key tells jobs of the two pipelines apart.
func (n Needed) key() string {
	if n.Upstream {
		return "$" + n.Name
	}
	return n.Name
}

func readNeeds(p *Parser, d *Draft, n *tree.Node) {
	d.HasNeeds = true
	if n.Kind != tree.List && n.Kind != tree.Mapping {
		p.Should("needs", n, "a list of jobs, each a name, or a mapping of job, artifacts and optional")
		return
	}
	items, ok := flat(n, 0, nil)
	if !ok {
		p.Errorf(n.At, "needs has lists in lists more than %d deep, or too many of them", maxNesting)
		return
	}
	d.NoNeeds = len(items) == 0
	if len(items) > MaxNeeds {
		p.Errorf(n.At, "needs has %d jobs: it may have %d", len(items), MaxNeeds)
		return
	}
	seen := make(map[string]bool)
	for _, item := range items {
		need, ok := p.need(item)
		d.mirrors = d.mirrors || item.Has("pipeline") && !item.Has("job")
		switch {
		case !ok:
		case seen[need.key()] && need.Cells == nil:
			p.Errorf(item.At, "needs names %s twice", words.Quote(need.Name))
		default:
			seen[need.key()] = true
			d.Named = append(d.Named, need)
		}
	}
}

// flat returns the entries of a list in which there may be lists, as !reference makes
// them. It gives up when they are too deep, or more than anybody needs.
func flat(n *tree.Node, depth int, all []*tree.Node) (items []*tree.Node, ok bool) {
	if n.Kind != tree.List {
		return append(all, n), true
	}
	ok = depth <= maxNesting
	for i := 0; ok && i < len(n.Items); i++ {
		all, ok = flat(n.Items[i], depth+1, all)
		ok = ok && len(all) <= tree.MaxItems
	}
	return all, ok
}

func (p *Parser) need(n *tree.Node) (Needed, bool) {
	need := Needed{Artifacts: true, At: n.At}
	if n.Kind != tree.Mapping {
		var ok bool
		if n.Kind == tree.Null || n.Kind == tree.Boolean {
			p.Should("needs", n, "a list of jobs, each a name, or a mapping of job, artifacts and optional")
			return need, false
		}
		need.Name, ok = p.String("needs", n)
		return need, ok
	}
	keys, ignored := p.keysOfNeed(&need), ignoredInNeeds
	if need.Upstream = p.options.Child && n.Has("job") && strings.HasPrefix(n.Field("pipeline").Text, "$"); need.Upstream {
		keys["pipeline"], ignored = func(*tree.Node) {}, nil
	}
	ok := p.Fields("needs", n, keys, ignored)
	if !need.Upstream && (n.Has("pipeline") || n.Has("project")) {
		return need, false // ignored
	}
	if ok && !n.Has("job") {
		p.Errorf(n.At, "needs should name a job here")
	}
	return need, ok && need.Name != ""
}

// keysOfNeed are the readers of an entry of needs that is a mapping.
func (p *Parser) keysOfNeed(need *Needed) tree.Keys {
	return tree.Keys{
		"job":       func(n *tree.Node) { need.Name, _ = p.String("needs:job", n); need.At = n.At },
		"artifacts": func(n *tree.Node) { need.Artifacts, _ = p.Boolean("needs:artifacts", n) },
		"optional":  func(n *tree.Node) { need.Optional, _ = p.Boolean("needs:optional", n) },
		"parallel": func(n *tree.Node) {
			p.Fields("needs:parallel", n, tree.Keys{
				"matrix": func(n *tree.Node) { need.Cells = p.matrix("needs:parallel:matrix", n) },
			}, nil)
			if n.Kind == tree.Mapping && !n.Has("matrix") {
				p.Errorf(n.At, "needs:parallel should have a matrix: the parts that are needed")
			}
		},
	}
}

func readDependencies(p *Parser, d *Draft, n *tree.Node) {
	d.HasDepends = true
	d.Depends = p.Texts("dependencies", n)
}
