package pipeline

import (
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// Only returns the pipeline of some jobs and of all that these need: the jobs in
// their needs, and, of a job without needs, those whose artifacts it gets, if they are
// not manual. A name
// is that of a job, or of a parallel job for all its parts. The jobs of p are not
// changed. It fails for a name that is none, and says why the job is not in the
// pipeline if the file has it.
func (p *Pipeline) Only(names []string) (*Pipeline, error) {
	wanted := make(map[*Job]bool)
	for _, name := range names {
		found := false
		for _, j := range p.Jobs {
			if j.Name == name || j.Key == name {
				found = true
				p.want(j, wanted)
			}
		}
		if !found {
			return nil, p.missing(name)
		}
	}
	return p.copyOf(wanted), nil
}

// want adds a job and what it needs.
func (p *Pipeline) want(j *Job, wanted map[*Job]bool) {
	if wanted[j] {
		return
	}
	wanted[j] = true
	p.wantPipelines(j, wanted)
	for _, need := range j.Needs {
		p.want(need.Job, wanted)
	}
	for _, made := range j.madeBy() {
		p.want(made, wanted)
	}
	for _, from := range j.Fetch {
		if j.Needs != nil || from.When != Manual { // nobody has asked for that one
			p.want(from, wanted)
		}
	}
}

// wantPipelines adds the jobs of the child pipeline that a job starts, and the job that
// starts its own.
func (p *Pipeline) wantPipelines(j *Job, wanted map[*Job]bool) {
	for _, other := range p.Jobs {
		if other.Parent == j && !wanted[j.Parent] {
			p.want(other, wanted)
		}
	}
	if j.Parent != nil && !wanted[j.Parent] {
		wanted[j.Parent] = true // and not all others of its pipeline
		for _, need := range j.Parent.Needs {
			p.want(need.Job, wanted)
		}
		if j.Parent.Parent != nil {
			wanted[j.Parent.Parent] = true
		}
	}
}

func (p *Pipeline) missing(name string) error {
	for _, left := range p.Left {
		if left.Name == name {
			return fmt.Errorf("the job %s is not in this pipeline: %s", words.Quote(name), left.Why)
		}
	}
	var known []string
	for _, j := range p.Jobs {
		known = append(known, j.Name)
	}
	return fmt.Errorf("there is no job %s%s", words.Quote(name), words.Like(name, known))
}

// copyOf returns a pipeline of the wanted jobs, which refer to each other only.
func (p *Pipeline) copyOf(wanted map[*Job]bool) *Pipeline {
	out := *p
	out.Jobs = nil
	copies := make(map[*Job]*Job)
	for _, j := range p.Jobs {
		if !wanted[j] {
			continue
		}
		c := *j
		c.Index = len(out.Jobs)
		copies[j] = &c
		out.Jobs = append(out.Jobs, &c)
	}
	among := func(jobs []*Job) []*Job {
		var kept []*Job
		for _, j := range jobs {
			if copies[j] != nil {
				kept = append(kept, copies[j])
			}
		}
		return kept
	}
	for _, c := range out.Jobs {
		c.Needs = slices.Clone(c.Needs)
		for i := range c.Needs {
			c.Needs[i].Job = copies[c.Needs[i].Job]
		}
		c.Parent = copies[c.Parent]
		c.Made = c.Made.among(copies)
		c.WaitsFor, c.Fetch = among(c.WaitsFor), among(c.Fetch)
	}
	return &out
}
