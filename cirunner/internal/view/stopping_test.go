package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

func TestTheTreeSaysThatTheRunIsBeingStopped(t *testing.T) {
	f := frame{jobs: endJobs, status: "stopping; Ctrl-C again aborts", now: noon, begin: noon, width: 80, height: 24}
	assert.Equal(t, []string{"5 of 5 jobs, 2 failed  0.0s", "stopping; Ctrl-C again aborts", "test"}, stripped(f.draw())[:3])
}

// A job that has failed is seen in a list that is longer than the screen, wherever it stands, and
// so is some of what runs.
func TestFailedJobsAreSeenInALongList(t *testing.T) {
	var jobs []board.Job
	add := func(n int, j board.Job) {
		for range n {
			j.Name = fmt.Sprintf("%s %d", j.State, len(jobs))
			jobs = append(jobs, j)
		}
	}
	failed := board.Job{Stage: "build", State: plan.Failed, Why: "exit status 1", Attempt: 1, Begin: noon, End: noon}
	add(50, board.Job{Stage: "build", State: plan.Succeeded, Attempt: 1, Begin: noon, End: noon})
	add(1, failed)
	add(40, board.Job{Stage: "test", State: plan.Running, Phase: "script", Attempt: 1, Begin: noon})
	failed.Stage = "test"
	add(2, failed)
	assert.Equal(t, []string{
		"53 of 93 jobs, 3 failed  1m05s",
		"build", "├ ✗ failed 50    0.0s  exit status 1", "└ 50 success, 1 failed",
		"test", "├ ● running 51   0.0s", "├ ● running 52   0.0s",
		"├ ✗ failed 91    0.0s  exit status 1", "└ ✗ failed 92    0.0s  exit status 1",
		"… 38 lines more",
	}, drawn(jobs, 80, 10))
	for height := 1; height < 30; height++ {
		assert.LessOrEqual(t, len(drawn(jobs, 80, height)), height)
	}
	assert.Contains(t, strings.Join(drawn(jobs, 80, 4), "\n"), "failed 50")
}

// Jobs that were not started for one reason are one row, if there are many.
func TestTheTableFoldsWhatWasNotStarted(t *testing.T) {
	jobs := []board.Job{{Name: "runs", Stage: "test", State: plan.Canceled, Attempt: 1, Begin: noon, End: noon, Why: "enough"}}
	for i := range 222 {
		jobs = append(jobs, board.Job{Name: fmt.Sprint("job ", i), Stage: "test", State: plan.Canceled, Why: "enough"})
	}
	for i := range 3 {
		jobs = append(jobs, board.Job{Name: fmt.Sprint("next ", i), Stage: "next", State: plan.Skipped, Why: "failed"})
	}
	assert.Equal(t, []string{
		"JOB         STAGE  STATE     TRY  TIME  CAUSE",
		"runs        test   canceled  1    0.0s  enough",
		"(222 jobs)         canceled  -    -     enough",
		"next 0      next   skipped   -    -     failed",
		"next 1      next   skipped   -    -     failed",
		"next 2      next   skipped   -    -     failed",
	}, stripped(table(jobs, 80)))

	var out strings.Builder
	l := &Lines{W: &out}
	for _, j := range jobs {
		l.Changed(j)
	}
	assert.Equal(t, "[runs] == canceled: enough\n[job 0] == canceled: enough\n[job 1] == canceled: enough\n[job 2] == canceled: enough\n"+
		"[job 3] == canceled: enough\n[job 4] == canceled: enough\n== and other jobs: canceled: enough\n"+
		"[next 0] == skipped: failed\n[next 1] == skipped: failed\n[next 2] == skipped: failed\n", out.String())
}

func TestCanceledAndWarningLookDifferent(t *testing.T) {
	assert.NotEqual(t, styleOf[plan.Canceled].Render("x"), styleOf[plan.Warned].Render("x"))
	assert.NotEqual(t, mark(plan.Canceled)[:5], mark(plan.Warned)[:5])
}

// The screen keeps no line for a failure: the tree has one while the run lasts.
func TestAFailureIsToldOnceWhileTheRunLasts(t *testing.T) {
	s := &Screen{}
	s.Changed(board.Job{Name: "a", State: plan.Failed, Cause: pipeline.ScriptFailure, Why: "exit status 1"})
	assert.Empty(t, s.notices)
}
