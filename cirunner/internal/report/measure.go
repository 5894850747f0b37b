package report

import (
	"fmt"
	"strconv"

	"github.com/ambit-go/ambit/cirunner/internal/board"
)

// Measured reports whether a job has results of tests, and whether one has coverage: which
// columns a table needs.
func Measured(jobs []board.Job) (tests, coverage bool) {
	for _, j := range jobs {
		tests = tests || j.Tests != nil
		coverage = coverage || j.Coverage != ""
	}
	return tests, coverage
}

// Tests returns how many tests a job has run, and how many of them have failed.
func Tests(j board.Job) string {
	switch {
	case j.Tests == nil:
		return ""
	case j.Tests.Failed > 0:
		return fmt.Sprintf("%d, %d failed", j.Tests.Total, j.Tests.Failed)
	}
	return strconv.Itoa(j.Tests.Total)
}

// Coverage returns the coverage of a job.
func Coverage(j board.Job) string {
	if j.Coverage == "" {
		return ""
	}
	return j.Coverage + "%"
}

// measures sums tests up, and gives the mean of what jobs have covered, as GitLab does.
func measures(jobs []board.Job) string {
	var total, failed, measured int
	var sum float64
	for _, j := range jobs {
		if j.Tests != nil {
			total += j.Tests.Total
			failed += j.Tests.Failed
		}
		if percent, err := strconv.ParseFloat(j.Coverage, 64); err == nil {
			sum += percent
			measured++
		}
	}
	text := ""
	if total > 0 {
		text += fmt.Sprintf("; %d tests, %d failed", total, failed)
	}
	if measured > 0 {
		text += fmt.Sprintf("; coverage %.1f%%", sum/float64(measured))
	}
	return text
}
