package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits on what a job of the file is taken apart into.
const (
	maxParallel = 200 // parts of one job, as in GitLab
	maxJobs     = 500 // jobs of a pipeline
	maxMatrix   = 50  // variables of a matrix
)

// A cell is one combination of a matrix.
type cell []Variable

func (c cell) String() string {
	var values []string
	for _, v := range c {
		values = append(values, v.Value)
	}
	return "[" + strings.Join(values, ", ") + "]"
}

// has reports whether a cell has all the variables of another.
func (c cell) has(other cell) bool {
	return !slices.ContainsFunc(other, func(v Variable) bool { return !slices.Contains(c, v) })
}

func readParallel(p *parser, d *draft, n *node) {
	if n.kind != mapping {
		if n.kind != integer {
			p.should("parallel", n, "a number from 1 to %d, or a mapping with matrix", maxParallel)
			return
		}
		d.count, _ = p.integer("parallel", n, 1, maxParallel)
		return
	}
	p.fields("parallel", n, keys{"matrix": func(n *node) { d.matrix = p.matrix("parallel:matrix", n) }}, nil)
	if !n.has("matrix") {
		p.errorf(n.at, "parallel should be a number, or a mapping with matrix")
	}
}

// matrix reads a list of mappings of variables to their values, and returns
// every combination of each mapping: the last variable changes first.
func (p *parser) matrix(what string, n *node) []cell {
	if n.kind == list && len(n.items) == 0 {
		p.errorf(n.at, "%s is empty: it should be a list of mappings of variables to their values", what)
		return nil
	}
	if n.kind != list {
		p.should(what, n, "a list of mappings of variables to their values")
		return nil
	}
	var all []cell
	for _, item := range n.items {
		if !p.isMapping(what, item) {
			continue
		}
		combined, ok := p.combinations(what, item)
		if !ok {
			continue
		}
		all = append(all, combined...)
		if len(all) > maxParallel {
			p.errorf(n.at, "%s has more than %d combinations", what, maxParallel)
			return nil
		}
	}
	return all
}

func (p *parser) combinations(what string, n *node) ([]cell, bool) {
	if len(n.fields) > maxMatrix {
		p.errorf(n.at, "%s has a mapping of %d variables: %d are enough", what, len(n.fields), maxMatrix)
		return nil, false
	}
	combined := []cell{nil}
	for _, f := range n.fields {
		values := p.values(what, f)
		if len(combined)*len(values) > maxParallel {
			p.errorf(f.at, "%s has more than %d combinations", what, maxParallel)
			return nil, false
		}
		var longer []cell
		for _, c := range combined {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(c), Variable{Name: f.key, Value: value}))
			}
		}
		combined = longer
	}
	if len(n.fields) == 0 {
		p.errorf(n.at, "%s has a mapping without variables", what)
		return nil, false
	}
	return combined, true
}

// values reads the values of one variable of a matrix.
func (p *parser) values(what string, f field) []string {
	if !variableName.MatchString(f.key) {
		p.errorf(f.at, "%s cannot be the name of a variable: it should have letters, digits and _, and begin with no digit", quote(f.key))
		return nil
	}
	items := []*node{f.value}
	if f.value.kind == list {
		items = f.value.items
	}
	if len(items) == 0 {
		p.errorf(f.value.at, "%s: %s has no value", what, f.key)
	}
	var values []string
	for _, item := range items[:min(len(items), maxParallel+1)] {
		if value, ok := p.value(f.key, item); ok {
			values = append(values, value)
		}
	}
	return values
}

// parts returns the jobs that a draft stands for.
func (d *draft) parts() []*Job {
	if d.count == 0 && d.matrix == nil {
		return []*Job{d.part(d.key, 0, 0, nil)}
	}
	var parts []*Job
	for i, c := range d.matrix {
		parts = append(parts, d.part(d.key+": "+c.String(), i+1, len(d.matrix), c))
	}
	for i := range d.count {
		parts = append(parts, d.part(fmt.Sprintf("%s %d/%d", d.key, i+1, d.count), i+1, d.count, nil))
	}
	return parts
}

func (d *draft) part(name string, number, of int, c cell) *Job {
	job := d.Job
	job.Name, job.Node, job.Nodes = name, number, of
	if of > 0 {
		job.Variables = join(job.Variables, append(slices.Clone(c),
			Variable{Name: "CI_NODE_INDEX", Value: strconv.Itoa(number)},
			Variable{Name: "CI_NODE_TOTAL", Value: strconv.Itoa(of)}))
	}
	return &job
}
