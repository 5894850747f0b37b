package draft

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/expr"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// A Policy is what only or except say. Each that is given says something of its
// own: all of only must match, and none of except may.
type Policy struct {
	Refs       []string // nil where they are not given
	Variables  []*expr.Expr
	Changes    []string
	Kubernetes bool

	HasVariables, HasChanges bool
}

func (p *Parser) policy(what string, n *tree.Node) *Policy {
	pol := &Policy{}
	switch n.Kind {
	case tree.List:
		pol.Refs = p.refs(what, n)
		return pol
	case tree.Text: // GitLab refuses it, and has no pipeline
		p.Should(what, n, "a list of refs, or a mapping of refs, variables and changes")
		return pol
	}
	p.Fields(what, n, tree.Keys{
		"refs": func(n *tree.Node) { pol.Refs = p.refs(what+":refs", n) },
		"variables": func(n *tree.Node) {
			pol.HasVariables = true
			for _, item := range p.Texts(what+":variables", n) {
				if e := p.condition(what+":variables", item); e != nil {
					pol.Variables = append(pol.Variables, e)
				}
			}
		},
		"changes": func(n *tree.Node) { pol.Changes, pol.HasChanges = tree.AsWritten(p.Texts(what+":changes", n)), true },
		"kubernetes": func(n *tree.Node) {
			pol.Kubernetes = true
			if n.Kind != tree.Text || n.Text != "active" {
				p.Should(what+":kubernetes", n, "active")
			}
		},
	}, nil)
	return pol
}

// refs reads names of branches and tags, kinds of pipelines, and regular
// expressions between slashes.
func (p *Parser) refs(what string, n *tree.Node) []string {
	all := []string{}
	for _, item := range p.Texts(what, n) {
		if name, _, _ := strings.Cut(item.Text, "@"); strings.HasPrefix(name, "/") && name != AnyRef && expr.Pattern(name) == nil {
			p.Errorf(item.At, "%s: %s is no regular expression between slashes", what, words.Quote(item.Text))
			continue
		}
		all = append(all, item.Text)
	}
	return all
}

// AnyRef is the empty regular expression, as in //@group/project.
const AnyRef = "//"
