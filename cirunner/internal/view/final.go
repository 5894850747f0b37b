package view

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/report"
)

// Final writes what a run has come to: what each failed job has said last, and the
// table, whose end is what has failed. No line of the table is wider than the
// terminal; what is said is cut at its edge.
func (s *Screen) Final(b *board.Board, summary string) error {
	width, _ := s.size()
	var text strings.Builder
	for i, j := range b.Jobs() {
		if j.State == plan.Failed {
			last, of := b.Tail(i)
			text.WriteString(failure(j, last, of, width) + "\n")
		}
	}
	for _, line := range table(b.Jobs(), width) {
		text.WriteString(line + "\n")
	}
	_, err := fmt.Fprintf(s.out, "\n%s\n%s\n", text.String(), summary)
	return err
}

// failure tells how a job has failed, with the last lines of its script.
func failure(j board.Job, last []string, of, width int) string {
	var b strings.Builder
	b.WriteString(ansi.Wrap(mark(j.State)+" "+bold.Render(j.Name)+": "+red.Render(report.Cause(j)), width, "") + "\n")
	if of > len(last) {
		b.WriteString(faint.Render(fmt.Sprintf("  … %d lines before", of-len(last))) + "\n")
	}
	for _, line := range last {
		b.WriteString(ansi.Truncate("  "+line, width, "…") + "\n")
	}
	return b.String()
}

// A column of the table.
type column struct {
	header string
	cell   func(board.Job) string
	least  int  // the least width that is of use; 0: it is never cut
	loud   bool // it has the colour of the job's state
	width  int  // what fit has found
}

// table returns the table in lines of at most a width. Where there is little room
// stages and attempts are left out, then names and stages are cut, the cause last.
func table(jobs []board.Job, width int) []string {
	columns := []column{
		{header: "JOB", cell: func(j board.Job) string { return j.Name }, least: 12},
		{header: "STAGE", cell: func(j board.Job) string { return j.Stage }, least: 8},
		{header: "STATE", cell: func(j board.Job) string { return j.State.String() }, loud: true},
		{header: "TRY", cell: report.Attempts},
		{header: "TIME", cell: report.Took},
		{header: "CAUSE", cell: why, least: 20, loud: true},
	}
	if width < 60 {
		columns = []column{columns[0], columns[2], columns[4], columns[5]}
	}
	tests, coverage := report.Measured(jobs)
	last := len(columns) - 1
	if coverage {
		columns = slices.Insert(columns, last, column{header: "COV", cell: report.Coverage})
	}
	if tests {
		columns = slices.Insert(columns, last, column{header: "TESTS", cell: report.Tests})
	}
	jobs = report.Fold(report.FailuresLast(jobs))
	fit(columns, jobs, width)
	header := make([]string, len(columns))
	for k, c := range columns {
		header[k] = bold.Render(c.fill(c.header))
	}
	lines := []string{row(header, width)}
	for _, j := range jobs {
		cells := make([]string, len(columns))
		for k, c := range columns {
			cells[k] = c.fill(c.cell(j))
			if c.loud {
				cells[k] = styleOf[j.State].Render(cells[k])
			}
		}
		lines = append(lines, row(cells, width))
	}
	return lines
}

// fill returns a cell as wide as the column.
func (c *column) fill(text string) string {
	text = ansi.Truncate(text, c.width, "…")
	if c.header == "CAUSE" { // the last
		return text
	}
	return text + strings.Repeat(" ", c.width-ansi.StringWidth(text))
}

func row(cells []string, width int) string {
	return ansi.Truncate(strings.Join(cells, strings.Repeat(" ", gap)), width, "…")
}

// gap is what is between columns.
const gap = 2

// fit sets the widths of columns: what their cells need, and if that is too much the
// widest that may be cut gives way, one column of the terminal after the other.
func fit(columns []column, jobs []board.Job, width int) {
	total := -gap
	for k := range columns {
		c := &columns[k]
		c.width = len(c.header)
		for _, j := range jobs {
			c.width = max(c.width, ansi.StringWidth(c.cell(j)))
		}
		total += c.width + gap
	}
	for ; total > width; total-- {
		widest := -1
		for k, c := range columns {
			if c.least > 0 && c.width > c.least && (widest < 0 || c.width-c.least > columns[widest].width-columns[widest].least) {
				widest = k
			}
		}
		if widest < 0 {
			return
		}
		columns[widest].width--
	}
}

// why is the cause in few words: its kind is left out, which is in the file.
func why(j board.Job) string {
	if j.State == plan.Succeeded {
		return ""
	}
	first, _, _ := strings.Cut(j.Why, "\n")
	return board.Clean([]byte(first))
}

// styleOf is how a state looks.
var styleOf = map[plan.State]lipgloss.Style{
	plan.Waiting: faint, plan.Delayed: faint, plan.Locked: faint, plan.Ready: faint, plan.Running: blue, plan.Succeeded: green,
	plan.Failed: red, plan.Warned: yellow, plan.Canceled: violet, plan.Blocked: yellow, plan.Skipped: faint, plan.Manual: faint,
}
