// Package decide says for one run which jobs are in the pipeline: by rules, only,
// except and workflow.
package decide

import (
	"maps"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// A Run is what rules, only and except ask about.
type Run struct {
	*tree.Problems
	Facts
	Vars    map[string]string // of the run
	guarded bool              // there are workflow:rules, which take away what only is by default
	Why     string            // why there is no pipeline
}

// NewRun returns a run whose problems are told to p. Without predefined variables, it is
// one of a push to the branch local.
func NewRun(p *tree.Problems, known Facts) *Run {
	all := maps.Clone(known.Predefined)
	if len(all) == 0 {
		all = map[string]string{"CI": "true", "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "local", "CI_COMMIT_REF_NAME": "local"}
	}
	maps.Copy(all, known.Set)
	return &Run{Problems: p, Facts: known, Vars: all}
}

// IsProject reports whether a path, with variables, is that of the project of the run.
func (p *Run) IsProject(path string) bool {
	return p.Vars["CI_PROJECT_PATH"] != "" && p.Expand(path) == p.Vars["CI_PROJECT_PATH"]
}

// Strongest returns the variables that are over all others, in their order.
func (p *Run) Strongest() []pipeline.Variable {
	var all []pipeline.Variable
	for _, name := range words.SortedKeys(p.Set) {
		all = append(all, pipeline.Variable{Name: name, Value: p.Set[name]})
	}
	return all
}

// Facts are what is known of a run.
type Facts struct {
	// Predefined are the variables of the run, set those over all others.
	Predefined, Set map[string]string

	// Changed returns the files that have changed since a commit, or, for an empty name, in this run.
	Changed func(since string) ([]string, bool)

	// HasCommit reports whether a commit has a name.
	HasCommit func(name string) bool

	// Listing returns the files of the project.
	Listing func() []string
}

// with returns the variables of the run with those of the file over them, as they
// are written.
func (p *Run) with(own []pipeline.Variable) map[string]string {
	all := maps.Clone(p.Vars)
	for _, v := range own {
		all[v.Name] = v.Value
	}
	maps.Copy(all, p.Set)
	return all
}

// Expand returns a text with the variables of the run in it.
func (p *Run) Expand(s string) string { return strings.Join(vars.ExpandAll([]string{s}, p.Vars), "") }
