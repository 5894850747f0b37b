package draft

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
)

// Limits on what a job of the file is taken apart into.
const (
	maxParallel = 200              // parts of one job, as in GitLab
	MaxJobs     = pipeline.MaxJobs // jobs of a pipeline
	maxMatrix   = 50               // variables of a matrix
)

// A cell is one combination of a matrix.
type cell []pipeline.Variable

func (c cell) String() string {
	var values []string
	for _, v := range c {
		values = append(values, v.Value)
	}
	return "[" + strings.Join(values, ", ") + "]"
}

// Has reports whether a cell has all the variables of another.
func (c cell) Has(other cell) bool {
	return !slices.ContainsFunc(other, func(v pipeline.Variable) bool { return !slices.Contains(c, v) })
}

func readParallel(p *Parser, d *Draft, n *tree.Node) {
	if n.Kind != tree.Mapping {
		if n.Kind != tree.Integer {
			p.Should("parallel", n, "a number from 1 to %d, or a mapping with matrix", maxParallel)
			return
		}
		d.count, _ = p.Integer("parallel", n, 1, maxParallel)
		return
	}
	p.Fields("parallel", n, tree.Keys{"matrix": func(n *tree.Node) { d.Matrix = p.matrix("parallel:matrix", n) }}, nil)
	if !n.Has("matrix") {
		p.Errorf(n.At, "parallel should be a number, or a mapping with matrix")
	}
}

// matrix reads a list of mappings of variables to their values, and returns
// every combination of each mapping: the last variable changes first.
func (p *Parser) matrix(what string, n *tree.Node) []cell {
	if n.Kind == tree.List && len(n.Items) == 0 {
		p.Errorf(n.At, "%s is empty: it should be a list of mappings of variables to their values", what)
		return nil
	}
	if n.Kind != tree.List {
		p.Should(what, n, "a list of mappings of variables to their values")
		return nil
	}
	var all []cell
	for _, item := range n.Items {
		if !p.IsMapping(what, item) {
			continue
		}
		combined, ok := p.combinations(what, item)
		if !ok {
			continue
		}
		all = append(all, combined...)
		if len(all) > maxParallel {
			p.Errorf(n.At, "%s has more than %d combinations", what, maxParallel)
			return nil
		}
	}
	return all
}

func (p *Parser) combinations(what string, n *tree.Node) ([]cell, bool) {
	if len(n.Fields) > maxMatrix {
		p.Errorf(n.At, "%s has a mapping of %d variables: %d are enough", what, len(n.Fields), maxMatrix)
		return nil, false
	}
	combined := []cell{nil}
	for _, f := range n.Fields {
		values := p.values(what, f)
		if len(combined)*len(values) > maxParallel {
			p.Errorf(f.At, "%s has more than %d combinations", what, maxParallel)
			return nil, false
		}
		var longer []cell
		for _, c := range combined {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(c), pipeline.Variable{Name: f.Key, Value: value}))
			}
		}
		combined = longer
	}
	if len(n.Fields) == 0 {
		p.Errorf(n.At, "%s has a mapping without variables", what)
		return nil, false
	}
	return combined, true
}

// values reads the values of one variable of a matrix.
func (p *Parser) values(what string, f tree.Field) []string {
	p.warnOfName(f)
	items := []*tree.Node{f.Value}
	if f.Value.Kind == tree.List {
		items = f.Value.Items
	}
	if len(items) == 0 {
		p.Errorf(f.Value.At, "%s: %s has no value", what, f.Key)
	}
	var values []string
	for _, item := range items[:min(len(items), maxParallel+1)] {
		if item.Kind == tree.Null {
			p.Errorf(item.At, "%s: %s has an empty value", what, f.Key)
			continue
		}
		if value, ok := p.value(f.Key, item); ok {
			values = append(values, value)
		}
	}
	return values
}

// Parts returns the jobs that a draft stands for.
func (d *Draft) Parts() []*pipeline.Job {
	if d.count == 0 && d.Matrix == nil {
		return []*pipeline.Job{d.part(d.Key, 0, 0, nil)}
	}
	var parts []*pipeline.Job
	for i, c := range d.Matrix {
		parts = append(parts, d.part(d.Key+": "+c.String(), i+1, len(d.Matrix), c))
	}
	for i := range d.count {
		parts = append(parts, d.part(fmt.Sprintf("%s %d/%d", d.Key, i+1, d.count), i+1, d.count, nil))
	}
	return parts
}

func (d *Draft) part(name string, number, of int, c cell) *pipeline.Job {
	job := d.Job
	job.Name, job.Node, job.Nodes, job.Cell = name, number, of, c
	if of > 0 {
		exported := slices.DeleteFunc(slices.Clone(c), func(v pipeline.Variable) bool { return !pipeline.IsVariable(v.Name) })
		job.Variables = pipeline.Join(job.Variables, append(exported,
			pipeline.Variable{Name: "CI_NODE_INDEX", Value: strconv.Itoa(number)},
			pipeline.Variable{Name: "CI_NODE_TOTAL", Value: strconv.Itoa(of)}))
	}
	return &job
}
