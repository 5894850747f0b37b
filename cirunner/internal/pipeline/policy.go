package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/expr"
)

// A policy is what only or except say. Each that is given says something of its
// own: all of only must match, and none of except may.
type policy struct {
	refs       []string // nil where they are not given
	variables  []*expr.Expr
	changes    []string
	kubernetes bool

	hasVariables, hasChanges bool
}

// everyBranch is what only is where a job does not say.
//
// A job without only is in every pipeline, however, where workflow:rules decide which
// there are.
var everyBranch = []string{"branches", "tags"}

func (p *parser) policy(what string, n *node) *policy {
	pol := &policy{}
	switch n.kind {
	case list:
		pol.refs = p.refs(what, n)
		return pol
	case text: // GitLab refuses it, and has no pipeline
		p.should(what, n, "a list of refs, or a mapping of refs, variables and changes")
		return pol
	}
	p.fields(what, n, keys{
		"refs": func(n *node) { pol.refs = p.refs(what+":refs", n) },
		"variables": func(n *node) {
			pol.hasVariables = true
			for _, item := range p.list(what+":variables", n) {
				if e := p.condition(what+":variables", item); e != nil {
					pol.variables = append(pol.variables, e)
				}
			}
		},
		"changes": func(n *node) { pol.changes, pol.hasChanges = asWritten(p.list(what+":changes", n)), true },
		"kubernetes": func(n *node) {
			pol.kubernetes = true
			if n.kind != text || n.text != "active" {
				p.should(what+":kubernetes", n, "active")
			}
		},
	}, nil)
	return pol
}

// refs reads names of branches and tags, kinds of pipelines, and regular
// expressions between slashes.
func (p *parser) refs(what string, n *node) []string {
	all := []string{}
	for _, item := range p.list(what, n) {
		if name, _, _ := strings.Cut(item.text, "@"); strings.HasPrefix(name, "/") && name != anyRef && expr.Pattern(name) == nil {
			p.errorf(item.at, "%s: %s is no regular expression between slashes", what, quote(item.text))
			continue
		}
		all = append(all, item.text)
	}
	return all
}

// keeps says why only and except keep a job out; it is empty if they do not.
func (p *parser) keeps(d *draft, variables map[string]string) string {
	only := policy{}
	if d.only != nil {
		only = *d.only
	}
	if only.refs == nil {
		only.refs = everyBranch
	}
	if always := d.only == nil && p.guarded; !always && !p.refMatches(only.refs) {
		return fmt.Sprintf("only: %s is none of %s", p.refName(), strings.Join(only.refs, ", "))
	}
	for _, m := range p.policyMatches(only, variables) {
		if !m.matches {
			return "only:" + m.what + " does not match"
		}
	}
	if d.except == nil {
		return ""
	}
	if p.refMatches(d.except.refs) {
		return fmt.Sprintf("except: %s is one of %s", p.refName(), strings.Join(d.except.refs, ", "))
	}
	for _, m := range p.policyMatches(*d.except, variables) {
		if m.matches {
			return "except:" + m.what + " matches"
		}
	}
	return ""
}

type policyMatch struct {
	what    string
	matches bool
}

// policyMatches are what a policy says besides refs.
func (p *parser) policyMatches(pol policy, variables map[string]string) []policyMatch {
	var all []policyMatch
	if pol.hasVariables {
		all = append(all, policyMatch{"variables", slices.ContainsFunc(pol.variables, func(e *expr.Expr) bool { return e.True(variables) })})
	}
	if pol.hasChanges {
		all = append(all, policyMatch{"changes", p.hasChanged(changes{paths: pol.changes}, variables)})
	}
	if pol.kubernetes {
		all = append(all, policyMatch{"kubernetes", false}) // there is none
	}
	return all
}

// isTag and isMerge say what kind of run it is; else it is that of a branch.
func (p *parser) isTag() bool { return p.run["CI_COMMIT_TAG"] != "" }
func (p *parser) isMerge() bool {
	return p.run["CI_PIPELINE_SOURCE"] == "merge_request_event" || p.run["CI_PIPELINE_SOURCE"] == "external_pull_request_event"
}

// ref is the name of the branch or tag.
func (p *parser) ref() string { return p.run["CI_COMMIT_REF_NAME"] }

// refName describes the run for a message.
func (p *parser) refName() string {
	switch {
	case p.isTag():
		return "the tag " + p.ref()
	case p.isMerge():
		return "a merge request"
	}
	return "the branch " + p.ref() + " (" + p.run["CI_PIPELINE_SOURCE"] + ")"
}

// anyRef is the empty regular expression, as in //@group/project.
const anyRef = "//"

func (p *parser) refMatches(refs []string) bool { return slices.ContainsFunc(refs, p.refMatchesOne) }

// refMatchesOne reports whether the run is one of a branch, tag or kind. The text after an @ is
// the path of the project.
func (p *parser) refMatchesOne(pattern string) bool {
	pattern, project, has := strings.Cut(pattern, "@")
	if has && project != p.run["CI_PROJECT_PATH"] {
		return false
	}
	branch := !p.isTag() && !p.isMerge()
	source := strings.TrimSuffix(p.run["CI_PIPELINE_SOURCE"], "_event")
	switch {
	case pattern == "tags" && p.isTag(), pattern == "branches" && branch:
		return true
	case source != "" && (pattern == source || pattern == plural(source)):
		return true
	case !branch && !p.isTag():
		return false
	case pattern == anyRef:
		return true
	}
	if re := expr.Pattern(pattern); re != nil {
		return re.MatchString(p.ref())
	}
	return pattern == p.ref()
}

func plural(source string) string {
	if strings.HasSuffix(source, "sh") {
		return source + "es"
	}
	return source + "s"
}
