package pipeline

import (
	"fmt"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// Only returns the pipeline of some jobs and of all that these need: the jobs in
// their needs, and, of a job without needs, those whose artifacts it gets, if they are
// not manual. A job that starts a pipeline comes with all of that, and a job of a child
// pipeline with those that start it. A name is that of a job, or of a parallel job for all
// its parts. The jobs of p are not changed. It fails for a name that is none, and says why
// the job is not in the pipeline if the file has it.
func (p *Pipeline) Only(names []string) (*Pipeline, error) {
	s := &selection{all: p.Jobs, taken: map[*Job]bool{}, whole: map[*Job]bool{}, asked: map[*Job]bool{}}
	for _, name := range names {
		found := false
		for _, j := range p.Jobs {
			if j.Name == name || j.Key == name {
				found = true
				s.take(j, true)
			}
		}
		if !found {
			return nil, p.missing(name)
		}
	}
	return p.copyOf(s), nil
}

// A selection is some of all jobs.
type selection struct {
	all   []*Job
	taken map[*Job]bool
	whole map[*Job]bool // with the pipeline that the job starts
	asked map[*Job]bool // named, or needed by one that is
}

// take takes a job, what it needs, and the pipeline that it starts. Nobody has asked for the jobs
// of that.
func (s *selection) take(j *Job, asked bool) {
	s.takeAlone(j, asked)
	if s.whole[j] {
		return
	}
	s.whole[j] = true
	for _, other := range s.all {
		if other.Parent == j {
			s.take(other, false)
		}
	}
	for _, from := range j.Fetch {
		if j.Needs == nil && from.When != Manual {
			s.take(from, false)
		}
	}
}

// takeAlone takes a job and what it cannot start without.
func (s *selection) takeAlone(j *Job, asked bool) {
	if s.taken[j] && (s.asked[j] || !asked) {
		return
	}
	s.taken[j] = true
	s.asked[j] = s.asked[j] || asked
	for _, need := range j.Needs {
		s.take(need.Job, asked)
	}
	for _, made := range j.madeBy() {
		s.take(made, asked)
	}
	if j.Parent != nil {
		s.takeAlone(j.Parent, asked)
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

// copyOf returns a pipeline of the jobs that are taken, which refer to each other only.
func (p *Pipeline) copyOf(s *selection) *Pipeline {
	out := *p
	out.Jobs = nil
	copies := make(map[*Job]*Job)
	for _, j := range p.Jobs {
		if !s.taken[j] {
			continue
		}
		c := *j
		c.Asked = s.asked[j]
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
