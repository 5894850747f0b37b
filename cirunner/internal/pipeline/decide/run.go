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
	r := &Run{Problems: p, Facts: known, Vars: all}
	r.lay(r.Over(""))
	return r
}

// IsProject reports whether a path, with variables, is that of the project of the run.
func (p *Run) IsProject(path string) bool {
	return p.Vars["CI_PROJECT_PATH"] != "" && p.Expand(path) == p.Vars["CI_PROJECT_PATH"]
}

// lay puts variables over those of the run.
func (p *Run) lay(over []pipeline.Variable) {
	for _, v := range over {
		p.Vars[v.Name] = v.Value
	}
}

// Over returns the variables that are over those of files and jobs, for jobs of an
// environment: the project's, and, over these, those of the command line.
func (p *Run) Over(environment string) []pipeline.Variable {
	var all []pipeline.Variable
	if p.Project != nil {
		all = p.Project(environment)
	}
	return pipeline.Join(all, p.strongest())
}

// OverJob returns the same for a job.
func (p *Run) OverJob(job *pipeline.Job) []pipeline.Variable {
	return p.Over(p.environmentOf(job))
}

// environmentOf returns the name of a job's environment, with variables.
func (p *Run) environmentOf(job *pipeline.Job) string {
	name := job.Environment.Name
	if !strings.Contains(name, "$") {
		return name
	}
	return strings.Join(vars.ExpandAll([]string{name}, p.with(job.Variables, "")), "")
}

// strongest returns the variables that are over all others, in their order.
func (p *Run) strongest() []pipeline.Variable {
	var all []pipeline.Variable
	for _, name := range words.SortedKeys(p.Set) {
		all = append(all, pipeline.Variable{Name: name, Value: p.Set[name], Fixed: true})
	}
	return all
}

// Facts are what is known of a run.
type Facts struct {
	// Predefined are the variables of the run, set those over all others.
	Predefined, Set map[string]string

	// Project returns the project's variables for jobs of an environment, which is empty for
	// none. They are over those of the file and its jobs. It may be nil.
	Project func(environment string) []pipeline.Variable

	// Elsewhere reports whether the environment of the runner has a variable. It may be nil.
	Elsewhere func(name string) bool

	// Changed returns the files that have changed since a commit, or, for an empty name, in this run.
	Changed func(since string) ([]string, bool)

	// HasCommit reports whether a commit has a name.
	HasCommit func(name string) bool

	// Listing returns the files of the project.
	Listing func() []string
}

// with returns the variables of the run for jobs of an environment, with those of the
// file over the predefined ones, as they are written.
func (p *Run) with(own []pipeline.Variable, environment string) map[string]string {
	all := maps.Clone(p.Vars)
	for _, v := range own {
		all[v.Name] = v.Value
	}
	for _, v := range p.Over(environment) {
		all[v.Name] = v.Value
	}
	return all
}

// Expand returns a text with the variables of the run in it.
func (p *Run) Expand(s string) string { return strings.Join(vars.ExpandAll([]string{s}, p.Vars), "") }
