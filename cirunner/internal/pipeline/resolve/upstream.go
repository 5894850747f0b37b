package resolve

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// ofUpstream returns the jobs that an entry of needs names, of the pipeline that starts this one.
// A job that has not ended by then cannot be waited for: it may wait for this pipeline.
func (g *grapher) ofUpstream(d *draft.Draft, need draft.Needed) []*pipeline.Job {
	jobs := g.upstream(need.Name)
	there := len(jobs) > 0
	jobs = slices.DeleteFunc(jobs, func(job *pipeline.Job) bool { return !need.Wants(job) })
	if there && len(jobs) == 0 && !need.Optional {
		g.Errorf(need.At, "%s needs a part of %s that its matrix does not have", words.Quote(d.Key), words.Quote(need.Name))
	}
	if !there && !need.Optional && len(g.parts[d]) > 0 {
		g.Errorf(need.At, "%s needs %s of the pipeline that starts this one, and there is no such job for which the job that starts it waits",
			words.Quote(d.Key), words.Quote(need.Name))
	}
	return jobs
}

// tieMade ties a job to those that make files of the pipeline that it starts.
func (g *grapher) tieMade(job *pipeline.Job, t *draft.Trigger) {
	for _, file := range t.Made {
		to, jobs := g.find(file.Job)
		makers := slices.DeleteFunc(slices.Clone(jobs), func(other *pipeline.Job) bool { return !slices.Contains(job.WaitsFor, other) })
		switch {
		case to == nil:
			g.Errorf(file.At, "trigger:include:artifact: there is no job %s%s", words.Quote(file.Job), g.DidYouMean(file.Job, words.SortedKeys(g.drafts)))
			continue
		case len(jobs) == 0:
			g.Errorf(file.At, "trigger:include:artifact: %s, which makes the file, is not in this pipeline (%s)", words.Quote(file.Job), g.absent[to])
			continue
		case len(makers) == 0:
			g.Errorf(file.At, "trigger:include:artifact: %s does not wait for %s, which makes the file: it should be among its needs, or in an earlier stage",
				words.Quote(job.Name), words.Quote(file.Job))
			continue
		case len(makers) > 1:
			g.Errorf(file.At, "trigger:include:artifact: %s has %d parts, and one of them makes the file: name that, such as %s", words.Quote(file.Job), len(makers), words.Quote(makers[0].Name))
			continue
		case job.Made == nil:
			job.Made = &pipeline.Made{}
		}
		job.Made.Files = append(job.Made.Files, pipeline.MadeFile{From: makers[0], Path: file.Path})
	}
}
