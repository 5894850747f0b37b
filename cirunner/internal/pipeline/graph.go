package pipeline

import (
	"cmp"
	"slices"
)

// A grapher takes drafts apart into jobs and ties these together.
type grapher struct {
	*parser
	out    *Pipeline
	drafts map[string]*draft // by key
	parts  map[*draft][]*Job // none for a job that is not in the pipeline
	absent map[*draft]string // why a job is not in the pipeline
	made   map[*Job]decision
	owner  map[string]*draft // by the name of a part
	edges  map[*draft][]edge
}

// An edge leads from a draft to one that it needs.
type edge struct {
	to *draft
	at mark
}

// resolve makes the pipeline of the drafts.
func (p *parser) resolve() *Pipeline {
	g := &grapher{parser: p, out: &Pipeline{File: p.files[0].name, Why: p.why}, drafts: make(map[string]*draft),
		parts: make(map[*draft][]*Job), absent: make(map[*draft]string), made: make(map[*Job]decision), owner: make(map[string]*draft), edges: make(map[*draft][]edge)}
	for _, d := range p.drafts {
		g.drafts[d.key] = d
	}
	if !g.takeApart() {
		return nil
	}
	g.setStages()
	for _, d := range p.drafts {
		g.tie(d)
	}
	g.cycles()
	for _, d := range p.drafts {
		g.checkDependencies(d)
	}
	if len(p.problems.list) > 0 {
		return nil
	}
	for _, d := range p.drafts {
		for _, job := range g.parts[d] {
			g.order(d, job)
		}
	}
	g.out.Left = p.left
	return g.out
}

// takeApart makes the jobs, and reports whether that are not too many.
func (g *grapher) takeApart() bool {
	for _, d := range g.parser.drafts {
		for _, job := range d.parts() {
			g.place(d, job)
		}
		if len(g.out.Jobs)+len(g.parts[d]) > maxJobs {
			g.errorf(d.at, "the pipeline has more than %d jobs from here on", maxJobs)
			return false
		}
		for _, job := range g.parts[d] {
			if d.matrix != nil && (hasControl(job.Name) || len(job.Name) > maxName) {
				g.errorf(d.at, "a part would be called %s: a name should be in one line, of %d bytes at most, without control characters", quote(job.Name), maxName)
			}
			if other := g.owner[job.Name]; other != nil && other != d {
				g.errorf(d.at, "two jobs would be called %s: this one, and the one on line %d", quote(job.Name), other.at.line)
			}
			g.owner[job.Name] = d
			job.Index = len(g.out.Jobs)
			g.out.Jobs = append(g.out.Jobs, job)
		}
	}
	if len(g.out.Jobs) == 0 && g.out.Why == "" {
		g.out.Why = "rules, only or when keep every job out for " + g.refName()
	}
	g.needsAnotherStage()
	return true
}

// needsAnotherStage leaves all jobs out if there are none but those of .pre and
// .post: by themselves they are no pipeline for GitLab.
func (g *grapher) needsAnotherStage() {
	other := func(j *Job) bool { return j.Stage != ".pre" && j.Stage != ".post" }
	if len(g.out.Jobs) == 0 || slices.ContainsFunc(g.out.Jobs, other) {
		return
	}
	g.out.Why = "there is no job but those of .pre and .post, which do not run without others, for " + g.refName()
	for _, job := range g.out.Jobs {
		d := g.owner[job.Name]
		g.parts[d], g.absent[d] = nil, g.out.Why
		g.left = append(g.left, &Left{Name: job.Name, Stage: job.Stage, Why: g.out.Why, Pos: job.Pos})
	}
	g.out.Jobs = nil
	slices.SortStableFunc(g.left, func(a, b *Left) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
}

// place puts a part into the pipeline, or among those that are left out.
func (g *grapher) place(d *draft, job *Job) {
	made, why := g.decide(d, job)
	if why != "" {
		g.absent[d] = why
		if g.owner[job.Name] == nil {
			g.owner[job.Name] = d
		}
		g.left = append(g.left, &Left{Name: job.Name, Stage: job.Stage, Why: why, Pos: job.Pos})
		return
	}
	job.Variables = join(job.Variables, g.options.set())
	job.Services = forPart(job.Services, job.Variables)
	job.ImageServices = imagesForPart(job.ImageServices, job.Variables)
	g.made[job] = made
	g.parts[d] = append(g.parts[d], job)
}

// setStages puts the jobs into their stages.
func (g *grapher) setStages() {
	used := func(stage string) bool {
		return slices.ContainsFunc(g.out.Jobs, func(j *Job) bool { return j.Stage == stage })
	}
	for _, stage := range g.stages {
		if stage != ".pre" && stage != ".post" || used(stage) {
			g.out.Stages = append(g.out.Stages, stage)
		}
	}
	for _, job := range g.out.Jobs {
		job.StageIndex = slices.Index(g.out.Stages, job.Stage)
	}
	for _, d := range g.parser.drafts {
		if slices.Contains(g.stages, d.Stage) {
			continue
		}
		if d.stageAt == d.at {
			g.errorf(d.at, "the job %s has no stage, which means test, and stages has none of that name: give it a stage", quote(d.key))
			continue
		}
		g.errorf(d.stageAt, "there is no stage %s%s", quote(d.Stage), g.didYouMean(d.Stage, g.stages))
	}
}

// tie turns the needs of a draft into those of its jobs.
func (g *grapher) tie(d *draft) {
	var own []Need
	if d.hasNeeds {
		own = g.tied(d, d.needs)
	}
	for _, job := range g.parts[d] {
		job.Needs = own
		if made := g.made[job]; made.hasNeeds {
			job.Needs = g.tied(d, made.needs)
		}
	}
}

// tied returns the jobs that some needs of a draft mean.
func (g *grapher) tied(d *draft, named []needed) []Need {
	needs := []Need{}
	index := make(map[*Job]int)
	for _, need := range named {
		for _, job := range g.named(d, need) {
			if i, had := index[job]; had {
				needs[i].Artifacts = needs[i].Artifacts || need.artifacts
				continue
			}
			index[job] = len(needs)
			needs = append(needs, Need{job, need.artifacts, need.optional, g.pos(need.at)})
		}
	}
	return needs
}

// named returns the jobs that an entry of needs names.
func (g *grapher) named(d *draft, need needed) []*Job {
	who, name := quote(d.key), quote(need.name)
	to, jobs := g.find(need.name)
	switch {
	case to == nil && need.optional, to != nil && len(jobs) == 0 && need.optional:
		return nil
	case to == nil:
		g.errorf(need.at, "%s needs %s, which is not in the file%s", who, name, g.didYouMean(need.name, sortedKeys(g.drafts)))
		return nil
	case len(jobs) == 0:
		if len(g.parts[d]) > 0 {
			g.errorf(need.at, "%s needs %s, which is not in this pipeline (%s): say optional: true, or take it out", who, name, g.absent[to])
		}
		return nil
	case g.stage(to) > g.stage(d) && g.stage(d) >= 0:
		g.errorf(need.at, "%s needs %s, which is in a later stage (%s): it may need jobs of its own stage (%s) and of earlier ones",
			who, name, to.Stage, d.Stage)
		return nil
	}
	g.edges[d] = append(g.edges[d], edge{to, need.at})
	if need.cells == nil {
		return jobs
	}
	var chosen []*Job
	for _, job := range jobs {
		if job.Node <= len(to.matrix) && job.Node > 0 && slices.ContainsFunc(need.cells, to.matrix[job.Node-1].has) {
			chosen = append(chosen, job)
		}
	}
	if len(chosen) == 0 {
		g.errorf(need.at, "%s needs a part of %s that its matrix does not have", who, name)
	}
	return chosen
}

// find returns the jobs of a name and their draft: all parts of a job of the
// file, or the one part of that very name.
func (g *grapher) find(name string) (*draft, []*Job) {
	if d := g.drafts[name]; d != nil {
		return d, g.parts[d]
	}
	d := g.owner[name]
	return d, slices.DeleteFunc(slices.Clone(g.parts[d]), func(j *Job) bool { return j.Name != name })
}

// stage returns the place of a draft's stage, or -1 for one that does not
// exist, which has been reported.
func (g *grapher) stage(d *draft) int { return slices.Index(g.stages, d.Stage) }

// cycles reports every way of needs that leads back to where it began.
func (g *grapher) cycles() {
	states := make(map[*draft]state)
	var path []*draft
	var visit func(d *draft)
	visit = func(d *draft) {
		states[d] = busy
		path = append(path, d)
		for _, e := range g.edges[d] {
			switch states[e.to] {
			case unseen:
				visit(e.to)
			case busy:
				g.cycle(path[slices.Index(path, e.to):], e)
			}
		}
		path = path[:len(path)-1]
		states[d] = settled
	}
	for _, d := range g.parser.drafts {
		if states[d] == unseen {
			visit(d)
		}
	}
}

func (g *grapher) cycle(path []*draft, last edge) {
	if len(path) == 1 {
		g.errorf(last.at, "%s needs itself", quote(path[0].key))
		return
	}
	var names []string
	for _, d := range path {
		names = append(names, d.key)
	}
	g.errorf(last.at, "needs go in a circle: %s", chain(names, "needs"))
}

// order says which jobs a job waits for, and whose artifacts it gets.
func (g *grapher) order(d *draft, job *Job) {
	waits, fetch := make(map[*Job]bool), make(map[*Job]bool)
	for _, need := range job.Needs {
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
	if d.hasFetch {
		fetch = g.dependencies(d, waits)
	}
	for _, other := range g.out.Jobs {
		if waits[other] {
			job.WaitsFor = append(job.WaitsFor, other)
		}
		if fetch[other] && other.Artifacts.any() {
			job.Fetch = append(job.Fetch, other)
		}
	}
}
