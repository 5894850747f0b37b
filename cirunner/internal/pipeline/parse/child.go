package parse

import (
	"errors"
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
		child := c.child(job, t)
		if child == nil {
			continue
		}
		if job.AllowFailure.All {
			c.Warn(t.At, "allow_failure of a child pipeline", "what fails in it fails the run all the same")
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
	if c.depth == maxPipelines {
		c.Errorf(t.At, "pipelines start pipelines more than %d deep", maxPipelines)
		return nil
	}
	o := c.options
	o.Set, o.Inputs = c.forwarded(job, t), nil
	root := &tree.Node{Kind: tree.Mapping, At: t.At, Fields: []tree.Field{{Key: "include", At: t.At, Value: withInputs(t)}}}
	p, err := o.compile(c.Sibling(), c.FirstFile(), c.depth+1, func(*compiler) *tree.Node { return root })
	var found *pipeline.Errors
	switch {
	case errors.As(err, &found):
		c.Errorf(t.At, "the child pipeline of %s: %s", words.Quote(job.Name), found.Problems[0])
	case err != nil:
		c.Errorf(t.At, "the child pipeline of %s: %v", words.Quote(job.Name), err)
	case p.Why != "":
		c.Errorf(t.At, "the child pipeline of %s has no job: %s", words.Quote(job.Name), p.Why)
	default:
		return p
	}
	return nil
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

// adopt puts the jobs of a child pipeline behind the job that starts it.
func adopt(p *pipeline.Pipeline, parent *pipeline.Job, child *pipeline.Pipeline) {
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
		p.Left = append(p.Left, left)
	}
	for _, job := range p.Jobs {
		if parent.Depend && slices.Contains(job.WaitsFor, parent) {
			job.WaitsFor = append(job.WaitsFor, child.Jobs...)
		}
	}
	at := slices.Index(p.Stages, parent.Stage) + 1
	for _, stage := range child.Stages {
		p.Stages = slices.Insert(p.Stages, at, prefix+stage)
		at++
	}
	p.Jobs = slices.Insert(p.Jobs, slices.Index(p.Jobs, parent)+1, child.Jobs...)
	for i, job := range p.Jobs {
		job.Index, job.StageIndex = i, slices.Index(p.Stages, job.Stage)
	}
	for _, job := range p.Jobs {
		slices.SortFunc(job.WaitsFor, func(a, b *pipeline.Job) int { return a.Index - b.Index })
	}
}
