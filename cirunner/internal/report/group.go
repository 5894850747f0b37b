package report

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/board"
)

// A Group is the jobs of one stage.
type Group struct {
	Stage string // as its own pipeline calls it
	Jobs  []int  // places

	// Parent is the job that starts the pipeline which the stage is of, empty for none; First says that it is the first
	// stage of that, Depth how many pipelines are around it.
	Parent string
	First  bool
	Depth  int
}

// Short is the name of a job in its own pipeline.
func Short(j board.Job) string {
	if j.Parent == "" {
		return j.Name
	}
	return strings.TrimPrefix(j.Name, j.Parent+"/")
}

// Groups returns the stages of jobs: those that are named first, which may be without jobs, then others in the order of
// the jobs. The stages of a child pipeline come below that of the job which starts it.
func Groups(stages []string, jobs []board.Job) []Group {
	g := grouper{jobs: jobs, of: map[string][]int{}, below: map[string][]string{}}
	parents := map[string]string{}
	for _, j := range jobs {
		parents[j.Stage] = j.Parent
	}
	for _, stage := range stages {
		g.add(stage, parents[stage])
	}
	for i, j := range jobs {
		g.add(j.Stage, j.Parent)
		g.of[j.Stage] = append(g.of[j.Stage], i)
	}
	g.walk("", 0)
	for _, j := range jobs {
		g.walk(j.Parent, 1) // of a job that is not among them
	}
	return g.all
}

// A grouper puts stages below the jobs that start their pipelines.
type grouper struct {
	jobs  []board.Job
	of    map[string][]int    // by stage
	below map[string][]string // stages that are not placed yet, by the job that starts their pipeline
	all   []Group
}

func (g *grouper) add(stage, parent string) {
	if _, known := g.of[stage]; !known {
		g.of[stage] = nil
		g.below[parent] = append(g.below[parent], stage)
	}
}

func (g *grouper) walk(parent string, depth int) {
	stages := g.below[parent]
	delete(g.below, parent)
	for k, stage := range stages {
		short := stage
		if parent != "" {
			short = strings.TrimPrefix(stage, parent+"/")
		}
		g.all = append(g.all, Group{Stage: short, Jobs: g.of[stage], Parent: parent, First: depth > 0 && k == 0, Depth: depth})
		for _, i := range g.of[stage] {
			g.walk(g.jobs[i].Name, depth+1)
		}
	}
}
