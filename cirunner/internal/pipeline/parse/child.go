package parse

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/ambit-go/ambit/cirunner/internal/vars"
)

// maxPipelines is how deep pipelines may start pipelines, as in GitLab.
const maxPipelines = 2

// A family is where a pipeline has come from.
type family struct {
	depth  int               // how many pipelines have started it
	parent *pipeline.Job     // the job that has; nil for none
	made   map[string][]byte // the files that jobs have made for it, by job and path
}

// madeKey is the key of a file in a family.
func madeKey(job, path string) string { return job + "\x00" + path }

// upstream returns the jobs of a name among those of the pipeline around that have ended when this one starts.
func (f family) upstream(name string) (found []*pipeline.Job) {
	if f.parent == nil {
		return nil
	}
	prefix, seen := "", map[*pipeline.Job]bool{}
	if f.parent.Parent != nil {
		prefix = f.parent.Parent.Name + "/"
	}
	var look func(*pipeline.Job)
	look = func(job *pipeline.Job) {
		for _, other := range job.WaitsFor {
			if seen[other] || other.Parent != f.parent.Parent {
				continue
			}
			seen[other] = true
			if other.Name == prefix+name || other.Key == prefix+name {
				found = append(found, other)
			}
			look(other)
		}
	}
	look(f.parent)
	return found
}

// startAll puts the jobs of child pipelines into the pipeline, each after the job that
// starts it. It returns their warnings.
func (c *compiler) startAll(p *pipeline.Pipeline) (warnings []pipeline.Warning) {
	if c.Count() > 0 {
		return nil
	}
	for _, job := range slices.Clone(p.Jobs) {
		t := c.starts[job]
		if t == nil {
			continue
		}
		if job.AllowFailure.All {
			c.Warn(t.At, "allow_failure of a child pipeline", "what fails in it fails the run all the same")
		}
		if job.Made != nil {
			job.Made.Read = c.later(t)
			continue
		}
		child := c.child(job, t)
		if child == nil {
			continue
		}
		if twice := p.Twice(child, job.Name+"/"); twice != "" {
			c.Errorf(t.At, "the child pipeline of %s has a job %s, and %s is the name of another", words.Quote(job.Name), words.Quote(twice), words.Quote(job.Name+"/"+twice))
			continue
		}
		warnings = append(warnings, child.Warnings...)
		adopt(p, job, child)
		if len(p.Jobs) > draft.MaxJobs {
			c.Errorf(t.At, "the pipeline has more than %d jobs from here on", draft.MaxJobs)
			return nil
		}
	}
	return warnings
}

// child returns the pipeline that a job starts; nil if that is wrong.
func (c *compiler) child(job *pipeline.Job, t *draft.Trigger) *pipeline.Pipeline {
	r := c.Sibling()
	p, err := c.compileChild(r, t, family{depth: c.family.depth + 1, parent: job})
	if err == nil {
		return p
	}
	c.Errorf(t.At, "the child pipeline of %s %v", words.Quote(job.Name), err)
	c.Take(&r.Problems)
	return nil
}

// later returns what makes the pipeline of t when its files are there.
func (c *compiler) later(t *draft.Trigger) func(*pipeline.Job, [][]byte) (*pipeline.Pipeline, error) {
	return func(job *pipeline.Job, contents [][]byte) (*pipeline.Pipeline, error) {
		of := family{depth: c.family.depth + 1, parent: job, made: map[string][]byte{}}
		for i, file := range t.Made {
			of.made[madeKey(file.Job, file.Path)] = contents[i]
		}
		r := c.Sibling()
		child, err := c.compileChild(r, t, of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the child pipeline %w", err), r.Err())
		}
		rename(job, child)
		return child, nil
	}
}

// compileChild makes the pipeline that a job starts. Its error says in a few words what is wrong with the
// pipeline; where it is wrong is among the problems of r.
func (c *compiler) compileChild(r *tree.Reader, t *draft.Trigger, of family) (*pipeline.Pipeline, error) {
	if of.depth > maxPipelines {
		return nil, fmt.Errorf("is too deep: pipelines start pipelines %d deep at most", maxPipelines)
	}
	o := c.options
	o.Set, o.Inputs = c.forwarded(of.parent, t), nil
	root := &tree.Node{Kind: tree.Mapping, At: t.At, Fields: []tree.Field{{Key: "include", At: t.At, Value: withInputs(t)}}}
	p, err := o.compile(r, c.FirstFile(), of, func(*compiler) *tree.Node { return root })
	switch {
	case err != nil:
		return nil, errors.New("is wrong")
	case p.Why != "":
		return nil, fmt.Errorf("has no job: %s", p.Why)
	}
	return p, nil
}

// withInputs returns what a trigger includes, with its inputs.
func withInputs(t *draft.Trigger) *tree.Node {
	if t.Inputs.Kind == tree.Null {
		return t.Include
	}
	items := []*tree.Node{t.Include}
	if t.Include.Kind == tree.List {
		items = t.Include.Items
	}
	all := &tree.Node{Kind: tree.List, At: t.Include.At}
	for _, item := range items {
		if item.Kind == tree.Text {
			item = &tree.Node{Kind: tree.Mapping, At: item.At, Fields: []tree.Field{{Key: "local", At: item.At, Value: item}}}
		}
		if !item.Has("inputs") {
			own := *item
			own.Fields = append(slices.Clone(item.Fields), tree.Field{Key: "inputs", At: t.Inputs.At, Value: t.Inputs})
			item = &own
		}
		all.Items = append(all.Items, item)
	}
	return all
}

// forwarded are the variables that are over all others in a child pipeline.
func (c *compiler) forwarded(job *pipeline.Job, t *draft.Trigger) map[string]string {
	set := map[string]string{}
	if t.YAML {
		known := maps.Clone(c.run.Vars)
		maps.Copy(known, pipeline.References(job.Variables))
		for _, v := range job.Variables {
			if v.File {
				known[v.Name] = "$${" + v.Name + "}" // the child's jobs have files of their own
			}
		}
		for _, v := range job.Variables {
			if v.Fixed { // the project's are there anyway, those of the command line are not forwarded
				continue
			}
			value := v.Value
			if !v.Raw {
				value = firstOf(vars.ExpandAll([]string{value}, known))
			}
			set[v.Name] = value
		}
	}
	if t.Pipeline {
		maps.Copy(set, c.options.Set)
	}
	set["CI_PIPELINE_SOURCE"] = "parent_pipeline"
	return set
}

func firstOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// rename gives the jobs of a child pipeline their names in the pipeline of the job that starts
// it, for which they wait.
func rename(parent *pipeline.Job, child *pipeline.Pipeline) {
	prefix := parent.Name + "/"
	for _, job := range child.Jobs {
		job.Name, job.Key, job.Stage = prefix+job.Name, prefix+job.Key, prefix+job.Stage
		if job.Parent == nil {
			job.Parent = parent
			job.WaitsFor = append([]*pipeline.Job{parent}, job.WaitsFor...)
		}
	}
	for _, left := range child.Left {
		left.Name, left.Stage = prefix+left.Name, prefix+left.Stage
	}
	for i := range child.Stages {
		child.Stages[i] = prefix + child.Stages[i]
	}
}

// adopt puts the jobs of a child pipeline behind the job that starts it.
func adopt(p *pipeline.Pipeline, parent *pipeline.Job, child *pipeline.Pipeline) {
	rename(parent, child)
	p.Left = append(p.Left, child.Left...)
	for _, job := range p.Jobs {
		if parent.Depend && slices.Contains(job.WaitsFor, parent) {
			job.WaitsFor = append(job.WaitsFor, child.Jobs...)
		}
	}
	p.Stages = slices.Insert(p.Stages, slices.Index(p.Stages, parent.Stage)+1, child.Stages...)
	p.Jobs = slices.Insert(p.Jobs, slices.Index(p.Jobs, parent)+1, child.Jobs...)
	for i, job := range p.Jobs {
		job.Index, job.StageIndex = i, slices.Index(p.Stages, job.Stage)
	}
	for _, job := range p.Jobs {
		slices.SortFunc(job.WaitsFor, func(a, b *pipeline.Job) int { return a.Index - b.Index })
	}
}
