package resolve

import (
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// dependencies returns the jobs that dependencies names, of those that a job
// waits for.
func (g *grapher) dependencies(d *draft.Draft, waits map[*pipeline.Job]bool) map[*pipeline.Job]bool {
	fetch := make(map[*pipeline.Job]bool)
	for _, n := range d.Depends {
		_, jobs := g.find(n.Text)
		for _, job := range jobs {
			fetch[job] = waits[job]
		}
	}
	return fetch
}

// checkDependencies reports names that dependencies cannot have. One of the same
// stage is allowed, and one beside an empty needs, but nothing waits for them: they bring no artifacts.
func (g *grapher) checkDependencies(d *draft.Draft) {
	for _, n := range d.Depends {
		to, jobs := g.find(n.Text)
		needed := slices.ContainsFunc(d.Named, func(need draft.Needed) bool { return need.Name == n.Text }) ||
			slices.ContainsFunc(g.parts[d], func(job *pipeline.Job) bool { return needsOneOf(job, jobs) })
		switch {
		case to == nil:
			g.Errorf(n.At, "%s depends on %s, which is not in the file%s", words.Quote(d.Key), words.Quote(n.Text),
				g.DidYouMean(n.Text, words.SortedKeys(g.drafts)))
		case needed || g.stage(to) < 0 || g.stage(d) < 0:
		case g.stage(to) > g.stage(d):
			g.Errorf(n.At, "%s depends on %s, but does not wait for it: it should be in an earlier stage", words.Quote(d.Key), words.Quote(n.Text))
		case d.NoNeeds || !d.HasNeeds && len(g.parts[d]) > 0 && !slices.ContainsFunc(g.parts[d], needsSome):
			g.Warn(n.At, "dependencies beside needs: []", "nothing waits for %s, so that its artifacts do not come; name it in needs", words.Quote(n.Text))
		case d.HasNeeds:
			g.Errorf(n.At, "%s depends on %s, but does not wait for it: it should be among its needs", words.Quote(d.Key), words.Quote(n.Text))
		case g.stage(to) == g.stage(d):
			g.Warn(n.At, "dependencies of the same stage", "nothing waits for %s, so that its artifacts do not come; name it in needs", words.Quote(n.Text))
		}
	}
}

// needsOneOf reports whether needs of a job have one of some jobs.
func needsOneOf(job *pipeline.Job, jobs []*pipeline.Job) bool {
	return slices.ContainsFunc(job.Needs, func(need pipeline.Need) bool { return slices.Contains(jobs, need.Job) })
}

// needsSome reports whether a job waits for anything: it has needs, or none were given and it waits for the stages
// before.
func needsSome(job *pipeline.Job) bool { return job.Needs == nil || len(job.Needs) > 0 }
