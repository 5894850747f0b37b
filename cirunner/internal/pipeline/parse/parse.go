// Package parse reads a pipeline file in the GitLab CI dialect and resolves it into
// a [pipeline.Pipeline], in which nothing is left to look up: anchors, merge keys,
// !reference, extends, default, parallel and needs are done with.
//
// It is strict: a keyword that it does not know, or knows and does not support,
// is an error, never silence. And it is patient: [Parse] reports everything
// that is wrong with a file, not the first thing.
//
// The steps are packages, each of which imports only those before it:
//
//	words    the words of messages
//	pipeline the values that come out
//	tree     text to YAML, YAML to nodes: merge keys, extends, !reference; values of a kind
//	draft    the keywords of a file and of its jobs: jobs as they are written
//	decide   rules, only, except and workflow for one run
//	resolve  parallel, stages, needs, artifacts: from names to jobs
//	parse    include, and the steps in their order
package parse

import (
	"cmp"
	"maps"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/decide"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/resolve"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// Parse reads a pipeline file for a run of which nothing is known but that it is
// that of a branch. name is what positions call the file.
//
// Its error is an [*Errors] with everything that is wrong with the file, as far
// as it can be told: a file that is not YAML has one error. Parse takes bounded
// time and memory whatever data is.
func Parse(name string, data []byte) (*pipeline.Pipeline, error) { return Options{}.Parse(name, data) }

// ParseFile reads a pipeline file by its name, as Parse does. It reads no more of
// it than a pipeline file may have. Its error is that of [Parse], or says why the
// file cannot be read.
func ParseFile(name string) (*pipeline.Pipeline, error) { return Options{}.ParseFile(name) }

// Parse reads a pipeline file for a run. name is what positions call the file;
// what it includes is read as well. Its error is that of the function [Parse].
func (o Options) Parse(name string, data []byte) (*pipeline.Pipeline, error) {
	return o.compile(tree.NewReader(o.Strict), name, family{}, func(c *compiler) *tree.Node {
		given := c.givenInputs()
		return c.readWith(name, data, given)
	})
}

// compile makes the pipeline of a file that open reads.
func (o Options) compile(r *tree.Reader, name string, of family, open func(c *compiler) *tree.Node) (*pipeline.Pipeline, error) {
	run := decide.NewRun(&r.Problems, decide.Facts{Predefined: o.Variables, Set: o.Set, Project: o.Project, Elsewhere: o.Elsewhere,
		Changed: o.Changed, HasCommit: o.HasCommit, Listing: o.Files})
	c := &compiler{options: o, run: run, family: of, starts: map[*pipeline.Job]*draft.Trigger{},
		Parser: draft.NewParser(r, draft.Settings{Cache: o.Cache, Containers: o.Containers, IsProject: run.IsProject, Child: of.depth > 0})}
	p := c.pipeline(open(c))
	var warnings []pipeline.Warning
	if p != nil {
		warnings = c.startAll(p)
		c.checkGroups(p)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	p.File, p.Warnings = name, append(r.SortedWarnings(), warnings...)
	return p, nil
}

// ParseFile reads a pipeline file by its name, as Parse does. Its error is that
// of Parse, or says why the file cannot be read.
func (o Options) ParseFile(name string) (*pipeline.Pipeline, error) {
	data, err := tree.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return o.Parse(name, data)
}

// A compiler takes a file through the steps.
type compiler struct {
	*draft.Parser
	run      *decide.Run
	options  Options
	includes int // how many files were included
	family   family
	starts   map[*pipeline.Job]*draft.Trigger // the pipelines that jobs start
}

// pipeline takes the steps in turn. Each goes as far as it can after the errors
// of those before it.
func (c *compiler) pipeline(root *tree.Node) *pipeline.Pipeline {
	switch {
	case root == nil:
		return nil
	case root.Kind == tree.Null:
		c.Errorf(tree.Mark{File: root.At.File}, "the file has no job: a job is a name with a script, such as\n%s", smallest)
		return nil
	case root.Kind != tree.Mapping:
		c.Errorf(root.At, "a pipeline should be a mapping of names to jobs, not %s", root)
		return nil
	}
	found := c.Count()
	root = c.withIncludes(root, inclusion{dir: cmp.Or(c.options.Dir, ".")}, 0)
	if c.Count() > found {
		return nil // what was to be included would be missing wherever it is used
	}
	c.Extend(root, draft.IsGlobal)
	if c.Budget < 0 {
		return nil
	}
	c.References(root)
	c.GlobalKeywords(root)
	workflow := c.Workflow()
	globals := pipeline.Join(c.Globals, c.run.Workflow(workflow, c.Globals))
	drafts := c.Jobs(globals)
	if len(drafts) == 0 && c.Count() == 0 {
		c.Errorf(tree.Mark{File: root.At.File}, "the file has no job: a job is a name without a dot before it, with a script, such as\n%s", smallest)
	}
	p := resolve.Resolve(c.run, c.Stages, drafts, c.starts, c.family.upstream)
	if p != nil {
		p.Name = c.titled(workflow.Name, globals)
	}
	return p
}

// titled returns the name of a pipeline with the variables of its file and of the run.
func (c *compiler) titled(name string, globals []pipeline.Variable) string {
	known := maps.Clone(c.run.Vars)
	maps.Copy(known, pipeline.References(globals))
	maps.Copy(known, c.options.Set)
	return strings.TrimSpace(firstOf(vars.ExpandAll([]string{name}, known)))
}

const smallest = "\ttest:\n\t  script: make test"
