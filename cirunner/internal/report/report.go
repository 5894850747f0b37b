// Package report says what has become of a run: as a table, an error, a JUnit file and
// a page for the browser. report.go has the table and the error, junit.go the JUnit
// file; html.go is the page, timeline.go when what was on it, logtail.go the logs;
// file.go writes either file.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// Left reports whether a job was stopped, or has not been started because the
// run was.
func Left(jobs []board.Job) bool {
	return slices.ContainsFunc(jobs, func(j board.Job) bool { return j.State == plan.Canceled || !j.State.Final() })
}

// Failure returns the error that the jobs call for, nil if all was well. A failure
// of the runner weighs more than one of a script: it says nothing about the project.
func Failure(jobs []board.Job) (err error) {
	for _, j := range jobs {
		switch {
		case j.State == plan.Failed && j.Cause == pipeline.SystemFailure:
			return ErrSystem
		case j.State == plan.Failed:
			err = ErrJobs
		case j.State == plan.Blocked && err == nil:
			err = ErrBlocked
		}
	}
	return err
}

// The outcomes of jobs.
var (
	ErrJobs    = errors.New("jobs failed")
	ErrBlocked = errors.New("jobs wait for a manual job: run it with -manual")
	ErrSystem  = errors.New("jobs could not be run as they should")
)

// Table returns a line for each job, below a header: those that have failed last,
// where a reader begins.
func Table(jobs []board.Job) string {
	tests, coverage := Measured(jobs)
	add := func(cells []string, ofTests, ofCoverage, cause string) []string {
		if tests {
			cells = append(cells, ofTests)
		}
		if coverage {
			cells = append(cells, ofCoverage)
		}
		return append(cells, cause)
	}
	rows := [][]string{add([]string{"JOB", "STAGE", "STATE", "ATTEMPTS", "TIME"}, "TESTS", "COVERAGE", "CAUSE")}
	for _, j := range Fold(FailuresLast(jobs)) {
		rows = append(rows, add([]string{j.Name, j.Stage, j.State.String(), Attempts(j), Took(j)}, Tests(j), Coverage(j), Cause(j)))
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for k, cell := range row {
			width[k] = max(width[k], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for k, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", width[k]-ansi.StringWidth(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// FailuresLast returns jobs in their order, but those that have failed and may at
// the end, and after them those that have failed.
func FailuresLast(jobs []board.Job) []board.Job {
	last := map[plan.State]int{plan.Warned: 1, plan.Failed: 2}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b board.Job) int { return cmp.Compare(last[a.State], last[b.State]) })
	return jobs
}

// Few is how many jobs that were not started, for the same reason, are listed one by one.
const Few = 5

// Unstarted reports whether a job was canceled or skipped before its first attempt.
func Unstarted(j board.Job) bool {
	return j.Attempt == 0 && (j.State == plan.Canceled || j.State == plan.Skipped)
}

// Fold returns jobs in their order, in which those that were not started for the same
// reason are one, with their number as the name, if they are more than [Few].
func Fold(jobs []board.Job) []board.Job {
	type reason struct {
		state plan.State
		why   string
	}
	of := map[reason]int{}
	for _, j := range jobs {
		if Unstarted(j) {
			of[reason{j.State, j.Why}]++
		}
	}
	var folded []board.Job
	for _, j := range jobs {
		n := of[reason{j.State, j.Why}]
		switch {
		case !Unstarted(j) || n <= Few && n > 0:
			folded = append(folded, j)
		case n > 0:
			folded = append(folded, board.Job{Name: fmt.Sprintf("(%d jobs)", n), State: j.State, Why: j.Why})
			of[reason{j.State, j.Why}] = 0
		}
	}
	return folded
}

// Summary returns a sentence: how many jobs have ended how.
func Summary(jobs []board.Job, took time.Duration) string {
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
	if len(parts) == 0 {
		parts = []string{"no jobs"}
	}
	return fmt.Sprintf("%s, in %s%s", strings.Join(parts, ", "), Duration(took), measures(jobs))
}

// Duration returns a time as people say it: 0.4s, 12s, 3m05s, 2h04m.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Attempts returns how often a job was tried.
func Attempts(j board.Job) string {
	if j.Attempt == 0 {
		return "-"
	}
	return fmt.Sprint(j.Attempt)
}

// Took returns how long the last attempt at a job has taken.
func Took(j board.Job) string {
	if j.Begin.IsZero() {
		return "-"
	}
	return Duration(j.Took(j.Begin))
}

// Cause returns why a job is in its state, and of what kind that is; it is empty if
// there is nothing to tell.
func Cause(j board.Job) string {
	switch {
	case j.State == plan.Succeeded:
		return ""
	case j.Cause != "" && j.Cause != plan.Stopped:
		return string(j.Cause) + ": " + firstLine(j.Why)
	}
	return firstLine(j.Why)
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return board.Clean([]byte(first))
}
