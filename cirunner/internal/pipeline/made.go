package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSize is how many bytes a pipeline file may have. Those of people have some
// thousands.
const MaxSize = 256 << 10

// MaxJobs is how many jobs a pipeline may have, with those of its child pipelines.
const MaxJobs = 500

// A Made is a child pipeline whose files are artifacts of jobs: which jobs it has is known when
// these have run.
type Made struct {
	// Files are the artifacts, at least one.
	Files []MadeFile

	// Read makes the pipeline of the contents of Files, in their order, for the job that
	// starts it. The names of its jobs and stages begin with the name of that job. Calls must not overlap, also not
	// with those of other jobs.
	Read func(parent *Job, contents [][]byte) (*Pipeline, error)
}

// A MadeFile is a file that a job leaves among its artifacts.
type MadeFile struct {
	From *Job
	Path string
}

// MayGrow reports whether a job starts a pipeline whose files are made by jobs.
func (p *Pipeline) MayGrow() bool {
	return slices.ContainsFunc(p.Jobs, func(j *Job) bool { return j.Made != nil })
}

// MayGet reports whether a name can be that of a job of such a pipeline.
func (p *Pipeline) MayGet(name string) bool {
	return slices.ContainsFunc(p.Jobs, func(j *Job) bool { return j.Made != nil && strings.HasPrefix(name, j.Name+"/") })
}

// HasManual reports whether there is a manual job of a name, or a parallel one.
func (p *Pipeline) HasManual(name string) bool {
	return slices.ContainsFunc(p.Jobs, func(j *Job) bool { return j.When == Manual && (j.Name == name || j.Key == name) })
}

// Grow puts the jobs of a child pipeline that [Made] has read behind all others, so that no job
// gets another index. Its stages come behind that of the job which starts it.
func (p *Pipeline) Grow(parent *Job, child *Pipeline) error {
	if len(p.Jobs)+len(child.Jobs) > MaxJobs {
		return fmt.Errorf("the pipeline would have more than %d jobs", MaxJobs)
	}
	if twice := p.Twice(child, ""); twice != "" {
		return fmt.Errorf("two jobs would be called %q", twice)
	}
	p.Stages = slices.Insert(slices.Clone(p.Stages), slices.Index(p.Stages, parent.Stage)+1, child.Stages...)
	for _, job := range child.Jobs {
		job.Index, job.StageIndex = len(p.Jobs), slices.Index(p.Stages, job.Stage)
		p.Jobs = append(p.Jobs, job)
	}
	p.Left = append(p.Left, child.Left...)
	return nil
}

// Twice returns the name of the first job of a child pipeline that, behind a prefix, is also that of a
// job of p; empty if there is none.
func (p *Pipeline) Twice(child *Pipeline, prefix string) string {
	for _, job := range child.Jobs {
		if p.Job(prefix+job.Name) != nil {
			return job.Name
		}
	}
	return ""
}

// madeBy returns the jobs that make the files of the child pipeline which a job starts.
func (j *Job) madeBy() (all []*Job) {
	if j.Made == nil {
		return nil
	}
	for _, f := range j.Made.Files {
		all = append(all, f.From)
	}
	return all
}

// among returns the same of copies of the jobs.
func (m *Made) among(copies map[*Job]*Job) *Made {
	if m == nil {
		return nil
	}
	c := &Made{Files: slices.Clone(m.Files), Read: m.Read}
	for i := range c.Files {
		c.Files[i].From = copies[c.Files[i].From]
	}
	return c
}
