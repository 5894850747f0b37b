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

// Sums are what the jobs of a run have measured together.
type Sums struct {
	Tests, Failed int
	Coverage      float64 // the mean of what jobs have covered, as GitLab has it
	Measured      int     // how many jobs have a coverage
}

// SumUp sums up what jobs have measured.
func SumUp(jobs []board.Job) (s Sums) {
	for _, j := range jobs {
		if j.Tests != nil {
			s.Tests += j.Tests.Total
			s.Failed += j.Tests.Failed
		}
		if percent, err := strconv.ParseFloat(j.Coverage, 64); err == nil {
			s.Coverage += percent
			s.Measured++
		}
	}
	if s.Measured > 0 {
		s.Coverage /= float64(s.Measured)
	}
	return s
}

// measures says what jobs have measured, for the summary.
func measures(jobs []board.Job) string {
	sums, text := SumUp(jobs), ""
	if sums.Tests > 0 {
		text += fmt.Sprintf("; %d tests, %d failed", sums.Tests, sums.Failed)
	}
	if sums.Measured > 0 {
		text += fmt.Sprintf("; coverage %.1f%%", sums.Coverage)
	}
	return text
}
