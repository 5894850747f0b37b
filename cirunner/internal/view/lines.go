// Package view shows a run while it lasts: on a terminal as a tree that is drawn
// again and again, otherwise line by line. lines.go is the latter; tree.go draws
// the tree, screen.go puts it on the terminal, svg.go into a picture.
package view

import (
	"fmt"
	"io"
	"sync"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/report"
)

// Lines is a board.Watcher that writes what jobs say, each line whole and behind
// the job's name, and what becomes of them.
type Lines struct {
	W io.Writer
	// Failed is called once, with the first error of W.
	Failed func(error)
	once   sync.Once
	last   map[string]plan.State
	told   map[string]int // of jobs that were not started, by what is said of them
}

// Changed writes a line for a job that has come to another state.
func (l *Lines) Changed(j board.Job) {
	if l.last == nil {
		l.last = map[string]plan.State{}
	}
	before := l.last[j.Name]
	l.last[j.Name] = j.State
	if j.State == before {
		return
	}
	switch {
	case report.Unstarted(j):
		l.unstarted(j)
	case j.State == plan.Running && j.Attempt > 1:
		l.printf("[%s] == started, attempt %d\n", j.Name, j.Attempt)
	case j.State == plan.Running:
		l.printf("[%s] == started\n", j.Name)
	case j.State == plan.Ready && before == plan.Running:
		l.printf("[%s] == %s: %s; to be tried again\n", j.Name, j.Cause, j.Why)
	case j.State == plan.Succeeded:
		l.printf("[%s] == success in %s\n", j.Name, report.Duration(j.Took(j.End)))
	case j.State.Final() && j.Why != "":
		l.printf("[%s] == %s: %s\n", j.Name, j.State, j.Why)
	case j.State.Final():
		l.printf("[%s] == %s\n", j.Name, j.State)
	}
}

// unstarted writes a line for a job that was not started, unless the same was said of
// several others.
func (l *Lines) unstarted(j board.Job) {
	if l.told == nil {
		l.told = map[string]int{}
	}
	text := fmt.Sprintf("%s: %s", j.State, j.Why)
	switch l.told[text]++; {
	case l.told[text] <= report.Few:
		l.printf("[%s] == %s\n", j.Name, text)
	case l.told[text] == report.Few+1:
		l.printf("== and other jobs: %s\n", text)
	}
}

// Line writes a line.
func (l *Lines) Line(job, source, line string) {
	if source != "" {
		job += "/" + source
	}
	l.printf("[%s] %s\n", job, line)
}

// Notice writes a line of the runner's own.
func (l *Lines) Notice(text string) { l.printf("== %s\n", text) }

// printf writes a line in one piece.
func (l *Lines) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(l.W, format, args...); err != nil && l.Failed != nil {
		l.once.Do(func() { l.Failed(err) })
	}
}
