package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/expr"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
)

// everyBranch is what only is where a job does not say.
//
// A job without only is in every pipeline, however, where workflow:rules decide which
// there are.
var everyBranch = []string{"branches", "tags"}

// keeps says why only and except keep a job out; it is empty if they do not.
func (p *Run) keeps(d *draft.Draft, variables map[string]string) string {
	only := draft.Policy{}
	if d.Only != nil {
		only = *d.Only
	}
	if only.Refs == nil {
		only.Refs = everyBranch
	}
	if always := d.Only == nil && p.guarded; !always && !p.refMatches(only.Refs) {
		return fmt.Sprintf("only: %s is none of %s", p.RefName(), strings.Join(only.Refs, ", "))
	}
	for _, m := range p.policyMatches(only, variables) {
		if !m.matches {
			return "only:" + m.what + " does not match"
		}
	}
	if d.Except == nil {
		return ""
	}
	if p.refMatches(d.Except.Refs) {
		return fmt.Sprintf("except: %s is one of %s", p.RefName(), strings.Join(d.Except.Refs, ", "))
	}
	for _, m := range p.policyMatches(*d.Except, variables) {
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
func (p *Run) policyMatches(pol draft.Policy, variables map[string]string) []policyMatch {
	var all []policyMatch
	if pol.HasVariables {
		all = append(all, policyMatch{"variables", slices.ContainsFunc(pol.Variables, func(e *expr.Expr) bool { return e.True(variables) })})
	}
	if pol.HasChanges {
		all = append(all, policyMatch{"changes", p.hasChanged(draft.Changes{Paths: pol.Changes}, variables)})
	}
	if pol.Kubernetes {
		all = append(all, policyMatch{"kubernetes", false}) // there is none
	}
	return all
}

// isTag and isMerge say what kind of run it is; else it is that of a branch.
func (p *Run) isTag() bool { return p.Vars["CI_COMMIT_TAG"] != "" }
func (p *Run) isMerge() bool {
	return p.Vars["CI_PIPELINE_SOURCE"] == "merge_request_event" || p.Vars["CI_PIPELINE_SOURCE"] == "external_pull_request_event"
}

// ref is the name of the branch or tag.
func (p *Run) ref() string { return p.Vars["CI_COMMIT_REF_NAME"] }

// RefName describes the run for a message.
func (p *Run) RefName() string {
	switch {
	case p.isTag():
		return "the tag " + p.ref()
	case p.isMerge():
		return "a merge request"
	}
	return "the branch " + p.ref() + " (" + p.Vars["CI_PIPELINE_SOURCE"] + ")"
}

func (p *Run) refMatches(refs []string) bool { return slices.ContainsFunc(refs, p.refMatchesOne) }

// refMatchesOne reports whether the run is one of a branch, tag or kind. The text after an @ is
// the path of the project.
func (p *Run) refMatchesOne(pattern string) bool {
	pattern, project, has := strings.Cut(pattern, "@")
	if has && project != p.Vars["CI_PROJECT_PATH"] {
		return false
	}
	branch := !p.isTag() && !p.isMerge()
	source := strings.TrimSuffix(p.Vars["CI_PIPELINE_SOURCE"], "_event")
	switch {
	case pattern == "tags" && p.isTag(), pattern == "branches" && branch:
		return true
	case source != "" && (pattern == source || pattern == plural(source)):
		return true
	case !branch && !p.isTag():
		return false
	case pattern == draft.AnyRef:
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
