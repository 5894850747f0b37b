package report

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
)

// A Page is what an HTML report is about.
type Page struct {
	Name    string // of the pipeline
	Begin   time.Time
	Took    time.Duration
	Stopped string // why it has not come to its end, if it has not
	Stages  []string
	Jobs    []board.Job
	Logs    string // their directory
	Facts   []Fact // of which commit, on which machine
}

// A Fact is something that a reader wants to know of a run.
type Fact struct{ Name, Text string }

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// WriteHTML writes a page that needs nothing but itself, neither scripts nor a
// network: what has failed, the jobs of each stage on a time line, and of each job
// its attempts, why it has ended so, and the end of its log. It is written as a JUnit
// file is. At most one log at a time is in memory.
func WriteHTML(path string, p Page) error {
	return write(path, func(w io.Writer) error { return pageTemplate.Execute(w, newView(p)) })
}

// A pageView is what the template shows.
type pageView struct {
	Page
	Style   template.CSS
	Summary string
	Failed  []jobView
	Tiles   []tile
	Groups  []groupView
	Axis    []tick
}

// A groupView is a stage.
type groupView struct {
	Group
	Jobs []jobView
}

// A jobView is a job.
type jobView struct {
	board.Job
	ID   int // of its place on the page
	Mark string
	Took string
	Why  string
	Data string // tests and coverage
	Bars []bar  // of all attempts
	Runs []runView
}

// A runView is an attempt.
type runView struct {
	Number int
	Took   string
	Cause  string
}

func newView(p Page) pageView {
	v := pageView{Page: p, Style: template.CSS(pageCSS), Summary: Summary(p.Jobs, p.Took)}
	line := newTimeline(p.Begin, p.Took)
	v.Axis = line.ticks()
	v.Tiles = tiles(p)
	for _, g := range Groups(p.Stages, p.Jobs) {
		group := groupView{Group: g}
		for _, i := range g.Jobs {
			job := newJobView(i, p.Jobs[i], line)
			group.Jobs = append(group.Jobs, job)
			if job.Open() {
				v.Failed = append(v.Failed, job)
			}
		}
		v.Groups = append(v.Groups, group)
	}
	return v
}

func newJobView(i int, j board.Job, line timeline) jobView {
	v := jobView{Job: j, ID: i + 1, Mark: marks[j.State], Why: Cause(j), Data: data(j)}
	if j.Attempt > 0 {
		v.Took = Took(j)
	}
	v.Bars = line.waiting(j)
	for k, t := range j.Past {
		v.Bars = append(v.Bars, line.bars("past", t.Begin, t.End, t.Phases)...)
		past := board.Job{Begin: t.Begin, End: t.End, Cause: t.Cause, Why: t.Why}
		v.Runs = append(v.Runs, runView{k + 1, Took(past), Cause(past)})
	}
	if !j.Begin.IsZero() {
		end := j.End
		if end.IsZero() {
			end = line.end
		}
		v.Bars = append(v.Bars, line.bars(j.State.String(), j.Begin, end, j.Phases)...)
		v.Runs = append(v.Runs, runView{len(j.Past) + 1, Took(j), cmp.Or(v.Why, j.State.String())})
	}
	return v
}

// Wait returns how long the job has waited for room, if that is worth a word.
func (v jobView) Wait() string {
	if v.Waited < told {
		return ""
	}
	return Duration(v.Waited)
}

// Short is the name of the job below the heading of its pipeline.
func (v jobView) Short() string { return Short(v.Job) }

// Measured reports whether a job has tests or coverage, which have a column then.
func (v pageView) Measured() bool {
	tests, coverage := Measured(v.Jobs)
	return tests || coverage
}

// Tail returns the end of the log. The template calls it when it comes to that.
func (v jobView) Tail() logTail {
	if v.Open() {
		return readTail(v.Log, longTail)
	}
	return readTail(v.Log, shortTail)
}
