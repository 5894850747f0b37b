package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/report"
)

// Colours are the sixteen that every terminal has, and that people choose to
// suit their eyes.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	blue   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	violet = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// A mark stands before a job. Without colours its shape is enough.
func mark(s plan.State) string {
	switch s {
	case plan.Running:
		return blue.Render("●")
	case plan.Succeeded:
		return green.Render("✓")
	case plan.Failed:
		return red.Render("✗")
	case plan.Warned:
		return yellow.Render("!")
	case plan.Canceled:
		return violet.Render("■")
	case plan.Skipped:
		return faint.Render("-")
	case plan.Blocked:
		return yellow.Render("▸")
	case plan.Manual:
		return faint.Render("▸")
	}
	return faint.Render("·")
}

// A frame is what is to be drawn.
type frame struct {
	jobs          []board.Job
	status        string // a line below the title, if it is not empty
	now           time.Time
	begin         time.Time
	width, height int
	names         int // width of the names' column
}

// A treeLine is a line of the tree.
type treeLine struct {
	text   string
	failed bool // it is that of a job that has failed
	head   bool // it is above the stages
}

// draw returns the lines of the tree, none wider than the terminal, and no more
// than fit: what there is no room for is summed up, running jobs and those that have failed
// last of all.
func (f *frame) draw() []string {
	stages := f.stages()
	f.names = f.nameWidth(stages)
	var all []treeLine
	for detail := everything; detail <= running; detail++ {
		all = []treeLine{{text: f.title(), head: true}}
		if f.status != "" {
			all = append(all, treeLine{text: yellow.Bold(true).Render(f.status), head: true})
		}
		for _, s := range stages {
			all = append(all, f.stage(s, detail)...)
		}
		if len(all) <= f.height {
			break
		}
	}
	lines := squeeze(all, f.height)
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, f.width, "…")
	}
	return lines
}

// squeeze leaves out lines where there are more than a height, and says how many. Those of
// failed jobs stay as far as there is room, but for half of it if other lines need that.
func squeeze(all []treeLine, height int) []string {
	room, heads, failed := len(all), 0, 0
	if len(all) > height {
		room = max(height-1, 0)
	}
	for _, l := range all {
		heads += count(l.head)
		failed += count(l.failed)
	}
	heads = min(heads, room)
	others := len(all) - heads - failed
	failed = min(failed, max((room-heads+1)/2, room-heads-others))
	others = room - heads - failed
	var lines []string
	for _, l := range all {
		left := &others
		switch {
		case l.head:
			left = &heads
		case l.failed:
			left = &failed
		}
		if *left > 0 {
			*left--
			lines = append(lines, l.text)
		}
	}
	if out := len(all) - len(lines); out > 0 && height > 0 {
		lines = append(lines, faint.Render(fmt.Sprintf("… %d lines more", out)))
	}
	return lines
}

func count(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// How much is shown.
const (
	everything = iota // each job
	active            // of a stage in which nothing runs a line, and what has failed
	running           // of the other stages only what runs or has failed
)

// title is the first line: how far the run has come, and how many jobs have failed.
func (f *frame) title() string {
	n, bad := 0, 0
	for _, j := range f.jobs {
		if j.State.Final() {
			n++
		}
		if j.State == plan.Failed {
			bad++
		}
	}
	title := bold.Render(fmt.Sprintf("%d of %d jobs", n, len(f.jobs)))
	if bad > 0 {
		title += red.Bold(true).Render(fmt.Sprintf(", %d failed", bad))
	}
	return title + faint.Render("  "+report.Duration(f.now.Sub(f.begin)))
}

// stage returns the lines of a stage.
func (f *frame) stage(s stage, detail int) []treeLine {
	busy := slices.ContainsFunc(s.jobs, func(j board.Job) bool { return j.State == plan.Running })
	whole := detail == everything || detail == active && busy
	var shown []board.Job
	for _, j := range s.jobs {
		if whole || j.State == plan.Running || j.State == plan.Failed {
			shown = append(shown, j)
		}
	}
	var lines []treeLine
	if s.of != "" {
		lines = append(lines, treeLine{text: strings.Repeat("  ", s.depth-1) + faint.Render("↳ pipeline of ") + bold.Render(s.of)})
	}
	if len(shown) == 0 {
		return append(lines, treeLine{text: s.indent() + sumMark(s.jobs) + " " + s.name + faint.Render("  "+sum(s.jobs))})
	}
	lines = append(lines, treeLine{text: s.indent() + bold.Render(s.name)})
	rest := len(s.jobs) - len(shown)
	for i, j := range shown {
		branch := "├ "
		if i == len(shown)-1 && rest == 0 {
			branch = "└ "
		}
		lines = append(lines, treeLine{text: s.indent() + faint.Render(branch) + f.job(j, f.names-2*s.depth), failed: j.State == plan.Failed})
	}
	if rest > 0 {
		lines = append(lines, treeLine{text: s.indent() + faint.Render(fmt.Sprintf("└ %s", sum(s.jobs)))})
	}
	return lines
}

// job is a job's line: its mark, name, time, and what it says.
func (f *frame) job(j board.Job, width int) string {
	width = max(width, 1)
	name := report.Short(j)
	if j.Attempt > 1 {
		name += fmt.Sprintf(" (attempt %d)", j.Attempt)
	}
	name = ansi.Truncate(name, width, "…")
	name += strings.Repeat(" ", width-ansi.StringWidth(name))
	took := ""
	if j.Attempt > 0 {
		took = report.Duration(j.Took(f.now))
	}
	return fmt.Sprintf("%s %s %s  %s", mark(j.State), name, faint.Render(fmt.Sprintf("%6s", took)), says(j))
}

func says(j board.Job) string {
	switch {
	case j.State == plan.Running && j.Phase != "script":
		return faint.Render(strings.TrimSpace(j.Phase + ": " + j.Last))
	case j.State == plan.Running:
		return j.Last
	case j.State == plan.Ready && j.Attempt > 0:
		return yellow.Render("to be tried again: " + j.Why)
	case j.State == plan.Failed:
		return red.Render(j.Why)
	case j.State == plan.Warned:
		return yellow.Render(j.Why + ", which is allowed")
	case j.State == plan.Succeeded:
		return ""
	case j.State == plan.Canceled && j.Attempt > 0:
		return violet.Render(j.State.String() + ": " + j.Why)
	case j.State.Final():
		return faint.Render(j.State.String() + ": " + j.Why)
	case j.State == plan.Waiting:
		return ""
	case j.State == plan.Locked:
		return faint.Render(j.Why)
	}
	return faint.Render(j.State.String())
}

// nameWidth is the width of the names' column: that of the widest, but at most a
// third of the terminal.
func (f *frame) nameWidth(stages []stage) int {
	w := 0
	for _, s := range stages {
		for _, j := range s.jobs {
			n := ansi.StringWidth(report.Short(j)) + 2*s.depth
			if j.Attempt > 1 {
				n += len(" (attempt 2)")
			}
			w = max(w, n)
		}
	}
	return max(min(w, f.width/3), 4)
}

// sumMark is the mark of the worst that has become of jobs.
func sumMark(jobs []board.Job) string {
	worst := plan.Succeeded
	for _, j := range jobs {
		switch {
		case !j.State.Final():
			return mark(plan.Waiting)
		case rank[j.State] > rank[worst]:
			worst = j.State
		}
	}
	return mark(worst)
}

var rank = map[plan.State]int{plan.Manual: 1, plan.Skipped: 2, plan.Warned: 3, plan.Blocked: 4, plan.Canceled: 5, plan.Failed: 6}

// sum counts jobs by state.
func sum(jobs []board.Job) string {
	n := map[plan.State]int{}
	for _, j := range jobs {
		n[j.State]++
	}
	var parts []string
	for s := plan.Waiting; s <= plan.Canceled; s++ {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(parts, ", ")
}
