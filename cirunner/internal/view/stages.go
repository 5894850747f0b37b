package view

import (
	"strings"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/report"
)

// stage is a stage's name and jobs.
type stage struct {
	name  string
	jobs  []board.Job
	depth int    // how many pipelines are around that of the stage
	of    string // the job that starts the pipeline of which it is the first stage; empty for no such stage
}

// indent is what a line of a child pipeline begins with.
func (s *stage) indent() string { return strings.Repeat("  ", s.depth) }

// stages returns the stages that have jobs, those of a child pipeline below that of the job which starts it.
func (f *frame) stages() []stage {
	var all []stage
	for _, g := range report.Groups(nil, f.jobs) {
		s := stage{name: g.Stage, depth: g.Depth}
		if g.First {
			s.of = g.Parent
		}
		for _, i := range g.Jobs {
			s.jobs = append(s.jobs, f.jobs[i])
		}
		all = append(all, s)
	}
	return all
}
