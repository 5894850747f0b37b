// Package resolve makes a pipeline of the jobs of a file: it takes parallel ones apart,
// and ties jobs together by stages, needs and dependencies.
package resolve

import (
	"cmp"
	"slices"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/decide"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/draft"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/tree"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
)

// A grapher takes drafts apart into jobs and ties these together.
type grapher struct {
	*decide.Run
	out    *pipeline.Pipeline
	stages []string
	all    []*draft.Draft
	left   []*pipeline.Left
	drafts map[string]*draft.Draft          // by key
	parts  map[*draft.Draft][]*pipeline.Job // none for a job that is not in the pipeline
	absent map[*draft.Draft]string          // why a job is not in the pipeline
	made   map[*pipeline.Job]decide.Decision
	owner  map[string]*draft.Draft // by the name of a part
	edges  map[*draft.Draft][]edge

	upstream func(name string) []*pipeline.Job
}

// An edge leads from a draft to one that it needs.
type edge struct {
	to *draft.Draft
	at tree.Mark
}

// Resolve makes the pipeline of the jobs of a file, for a run. It adds to starts the child
// pipelines that jobs start. upstream returns the jobs of the pipeline that starts this one, of those that have
// ended by then.
func Resolve(p *decide.Run, stages []string, all []*draft.Draft, starts map[*pipeline.Job]*draft.Trigger,
	upstream func(name string) []*pipeline.Job) *pipeline.Pipeline {
	g := &grapher{Run: p, upstream: upstream, stages: stages, all: all, out: &pipeline.Pipeline{File: p.FirstFile(), Why: p.Why}, drafts: make(map[string]*draft.Draft),
		parts: make(map[*draft.Draft][]*pipeline.Job), absent: make(map[*draft.Draft]string), made: make(map[*pipeline.Job]decide.Decision), owner: make(map[string]*draft.Draft), edges: make(map[*draft.Draft][]edge)}
	for _, d := range all {
		g.drafts[d.Key] = d
	}
	if !g.takeApart() {
		return nil
	}
	g.setStages()
	for _, d := range all {
		g.tie(d)
	}
	g.cycles()
	for _, d := range all {
		g.checkDependencies(d)
	}
	if p.Count() > 0 {
		return nil
	}
	for _, d := range all {
		for _, job := range g.parts[d] {
			g.order(d, job)
		}
	}
	g.out.Left = g.left
	for _, job := range g.out.Jobs {
		if t := g.owner[job.Name].Trigger; t != nil {
			starts[job] = t
			job.Depend = t.Depend
			g.tieMade(job, t)
		}
	}
	return g.out
}

// takeApart makes the jobs, and reports whether that are not too many.
func (g *grapher) takeApart() bool {
	for _, d := range g.all {
		for _, job := range d.Parts() {
			g.place(d, job)
		}
		if len(g.out.Jobs)+len(g.parts[d]) > draft.MaxJobs {
			g.Errorf(d.At, "the pipeline has more than %d jobs from here on", draft.MaxJobs)
			return false
		}
		for _, job := range g.parts[d] {
			if d.Matrix != nil && (words.HasControl(job.Name) || len(job.Name) > draft.MaxName) {
				g.Errorf(d.At, "a part would be called %s: a name should be in one line, of %d bytes at most, without control characters", words.Quote(job.Name), draft.MaxName)
			}
			if other := g.owner[job.Name]; other != nil && other != d {
				g.Errorf(d.At, "two jobs would be called %s: this one, and the one on line %d", words.Quote(job.Name), other.At.Line)
			}
			g.owner[job.Name] = d
			job.Index = len(g.out.Jobs)
			g.out.Jobs = append(g.out.Jobs, job)
		}
	}
	if len(g.out.Jobs) == 0 && g.out.Why == "" {
		g.out.Why = "rules, only or when keep every job out for " + g.RefName()
	}
	g.needsAnotherStage()
	return true
}

// needsAnotherStage leaves all jobs out if there are none but those of .pre and
// .post: by themselves they are no pipeline for GitLab.
func (g *grapher) needsAnotherStage() {
	other := func(j *pipeline.Job) bool { return j.Stage != ".pre" && j.Stage != ".post" }
	if len(g.out.Jobs) == 0 || slices.ContainsFunc(g.out.Jobs, other) {
		return
	}
	g.out.Why = "there is no job but those of .pre and .post, which do not run without others, for " + g.RefName()
	for _, job := range g.out.Jobs {
		d := g.owner[job.Name]
		g.parts[d], g.absent[d] = nil, g.out.Why
		g.left = append(g.left, &pipeline.Left{Name: job.Name, Stage: job.Stage, Why: g.out.Why, Pos: job.Pos})
	}
	g.out.Jobs = nil
	slices.SortStableFunc(g.left, func(a, b *pipeline.Left) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
}

// place puts a part into the pipeline, or among those that are left out.
func (g *grapher) place(d *draft.Draft, job *pipeline.Job) {
	made, why := g.Decide(d, job)
	if why != "" {
		g.absent[d] = why
		if g.owner[job.Name] == nil {
			g.owner[job.Name] = d
		}
		g.left = append(g.left, &pipeline.Left{Name: job.Name, Stage: job.Stage, Why: why, Pos: job.Pos})
		return
	}
	job.Variables = pipeline.Join(job.Variables, g.OverJob(job))
	job.Services = forPart(job.Services, job.Variables)
	job.ImageServices = imagesForPart(job.ImageServices, job.Variables)
	g.findTokens(d, job)
	g.made[job] = made
	g.parts[d] = append(g.parts[d], job)
}

// setStages puts the jobs into their stages.
func (g *grapher) setStages() {
	used := func(stage string) bool {
		return slices.ContainsFunc(g.out.Jobs, func(j *pipeline.Job) bool { return j.Stage == stage })
	}
	for _, stage := range g.stages {
		if stage != ".pre" && stage != ".post" || used(stage) {
			g.out.Stages = append(g.out.Stages, stage)
		}
	}
	for _, job := range g.out.Jobs {
		job.StageIndex = slices.Index(g.out.Stages, job.Stage)
	}
	for _, d := range g.all {
		if slices.Contains(g.stages, d.Stage) {
			continue
		}
		if d.StageAt == d.At {
			g.Errorf(d.At, "the job %s has no stage, which means test, and stages has none of that name: give it a stage", words.Quote(d.Key))
			continue
		}
		g.Errorf(d.StageAt, "there is no stage %s%s", words.Quote(d.Stage), g.DidYouMean(d.Stage, g.stages))
	}
}

// tie turns the needs of a draft into those of its jobs.
func (g *grapher) tie(d *draft.Draft) {
	var own []pipeline.Need
	if d.HasNeeds {
		own = g.tied(d, d.Named)
	}
	for _, job := range g.parts[d] {
		named := d.Named
		job.Needs = own
		if made := g.made[job]; made.HasNeeds {
			named = made.Needs
			job.Needs = g.tied(d, named)
		}
		if slices.ContainsFunc(named, draft.Needed.ByPart) {
			job.Needs = g.tied(d, g.ofPart(named, job))
		}
	}
}

// ofPart returns the needs that one part of a job has.
func (g *grapher) ofPart(named []draft.Needed, part *pipeline.Job) []draft.Needed {
	var own []draft.Needed
	for _, need := range named {
		need, err := need.For(part)
		if err != nil {
			g.Errorf(need.At, "%v", err)
			return nil
		}
		own = append(own, need)
	}
	return own
}

// tied returns the jobs that some needs of a draft mean.
func (g *grapher) tied(d *draft.Draft, named []draft.Needed) []pipeline.Need {
	needs := []pipeline.Need{}
	index := make(map[*pipeline.Job]int)
	for _, need := range named {
		for _, job := range g.named(d, need) {
			if i, had := index[job]; had {
				needs[i].Artifacts = needs[i].Artifacts || need.Artifacts
				continue
			}
			index[job] = len(needs)
			needs = append(needs, pipeline.Need{Job: job, Artifacts: need.Artifacts, Optional: need.Optional, Pos: g.Pos(need.At)})
		}
	}
	return needs
}

// named returns the jobs that an entry of needs names.
func (g *grapher) named(d *draft.Draft, need draft.Needed) []*pipeline.Job {
	who, name := words.Quote(d.Key), words.Quote(need.Name)
	switch {
	case need.Upstream && need.ByPart(): // those of the parts follow
		return nil
	case need.Upstream:
		return g.ofUpstream(d, need)
	}
	to, jobs := g.find(need.Name)
	switch {
	case to == nil && need.Optional, to != nil && len(jobs) == 0 && need.Optional:
		return nil
	case to == nil:
		g.Errorf(need.At, "%s needs %s, which is not in the file%s", who, name, g.DidYouMean(need.Name, words.SortedKeys(g.drafts)))
		return nil
	case len(jobs) == 0:
		if len(g.parts[d]) > 0 {
			g.Errorf(need.At, "%s needs %s, which is not in this pipeline (%s): say optional: true, or take it out", who, name, g.absent[to])
		}
		return nil
	case g.stage(to) > g.stage(d) && g.stage(d) >= 0:
		g.Errorf(need.At, "%s needs %s, which is in a later stage (%s): it may need jobs of its own stage (%s) and of earlier ones",
			who, name, to.Stage, d.Stage)
		return nil
	}
	g.edges[d] = append(g.edges[d], edge{to, need.At})
	if need.Cells == nil || need.ByPart() {
		return jobs
	}
	var chosen []*pipeline.Job
	for _, job := range jobs {
		if job.Node <= len(to.Matrix) && job.Node > 0 && slices.ContainsFunc(need.Cells, to.Matrix[job.Node-1].Has) {
			chosen = append(chosen, job)
		}
	}
	switch {
	case len(chosen) > 0 || need.Optional:
	case need.OfMatrix(to):
		g.Errorf(need.At, "%s needs a part of %s that is not in this pipeline (%s): say optional: true, or take it out", who, name, g.absent[to])
	default:
		g.Errorf(need.At, "%s needs a part of %s that its matrix does not have", who, name)
	}
	return chosen
}

// find returns the jobs of a name and their draft: all parts of a job of the
// file, or the one part of that very name.
func (g *grapher) find(name string) (*draft.Draft, []*pipeline.Job) {
	if d := g.drafts[name]; d != nil {
		return d, g.parts[d]
	}
	d := g.owner[name]
	return d, slices.DeleteFunc(slices.Clone(g.parts[d]), func(j *pipeline.Job) bool { return j.Name != name })
}

// stage returns the place of a draft's stage, or -1 for one that does not
// exist, which has been reported.
func (g *grapher) stage(d *draft.Draft) int { return slices.Index(g.stages, d.Stage) }

// order says which jobs a job waits for, and whose artifacts it gets.
func (g *grapher) order(d *draft.Draft, job *pipeline.Job) {
	waits, fetch := make(map[*pipeline.Job]bool), make(map[*pipeline.Job]bool)
	for _, need := range job.Needs {
		if !slices.Contains(g.out.Jobs, need.Job) { // of upstream
			job.WaitsFor = append(job.WaitsFor, need.Job)
			if need.Artifacts {
				job.Fetch = append(job.Fetch, need.Job)
			}
		}
		waits[need.Job] = true
		fetch[need.Job] = fetch[need.Job] || need.Artifacts
	}
	if job.Needs == nil {
		for _, other := range g.out.Jobs {
			if other.StageIndex < job.StageIndex {
				waits[other], fetch[other] = true, true
			}
		}
	}
	if d.HasDepends {
		fetch = g.dependencies(d, waits)
	}
	for _, other := range g.out.Jobs {
		if waits[other] {
			job.WaitsFor = append(job.WaitsFor, other)
		}
		if fetch[other] && other.Artifacts.Any() {
			job.Fetch = append(job.Fetch, other)
		}
	}
}
