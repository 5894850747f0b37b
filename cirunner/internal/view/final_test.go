package view

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
	"github.com/ambit-go/ambit/cirunner/internal/view/viewtest"
)

var endJobs = []board.Job{
	{Name: "lint", Stage: "test", State: plan.Failed, Attempt: 1, Begin: noon, End: noon, Cause: pipeline.ScriptFailure, Why: "exit status 1"},
	{Name: "compile: [linux, amd64, a-very-long-flavour]", Stage: "compilation-and-linking", State: plan.Succeeded, Attempt: 2, Begin: noon, End: noon},
	{Name: "slow", Stage: "test", State: plan.Failed, Attempt: 3, Begin: noon, End: noon, Cause: pipeline.TimeoutFailure, Why: "the script took longer than 2s, and ignored TERM: killed"},
	{Name: "日本", Stage: "test", State: plan.Warned, Attempt: 1, Begin: noon, End: noon, Cause: pipeline.ScriptFailure, Why: "exit status 2"},
	{Name: "deploy", Stage: "deploy", State: plan.Skipped, Why: `"lint" failed`},
}

func stripped(lines []string) []string {
	var all []string
	for _, l := range lines {
		all = append(all, strings.TrimRight(ansi.Strip(l), " "))
	}
	return all
}

func TestTheTableFits80Columns(t *testing.T) {
	assert.Equal(t, []string{
		"JOB                STAGE          STATE    TRY  TIME  CAUSE",
		"compile: [linux,…  compilation-…  success  2    0.0s",
		`deploy             deploy         skipped  -    -     "lint" failed`,
		"日本               test           warning  1    0.0s  exit status 2",
		"lint               test           failed   1    0.0s  exit status 1",
		"slow               test           failed   3    0.0s  the script took longer th…",
	}, stripped(table(endJobs, 80)))
	assert.Equal(t, []string{
		"JOB            STATE    TIME  CAUSE",
		"compile: [li…  success  0.0s",
	}, stripped(table(endJobs, 52))[:2])
	for width := 10; width < 200; width++ {
		for _, l := range table(endJobs, width) {
			require.LessOrEqual(t, ansi.StringWidth(l), width, "%q", l)
		}
	}
}

func TestTheTableIsColoured(t *testing.T) {
	lines := table(endJobs, 80)
	assert.Contains(t, lines[1], "\x1b[32msuccess")
	assert.Contains(t, lines[5], "\x1b[31mfailed")
}

func TestEveryStateHasAStyle(t *testing.T) {
	for s := plan.Waiting; s <= plan.Canceled; s++ {
		assert.Contains(t, styleOf, s, "%s", s)
	}
}

func TestTheEndShowsWhatFailedJobsSaidLast(t *testing.T) {
	b := board.New(endJobs, nil)
	b.Change(0, func(j *board.Job) { j.Phase = "script" })
	for range 15 {
		b.Line(0, board.Line{}, []byte(strings.Repeat("long ", 30)))
	}
	b.Line(0, board.Line{}, []byte("the last"))
	term := viewtest.New(60, 100)
	s := &Screen{out: crlf{term}, size: func() (int, int) { return 60, 24 }}
	require.NoError(t, s.Final(b, "the summary"))
	lines := term.Lines()
	assert.Equal(t, []string{"", "✗ lint: script_failure: exit status 1", "  … 6 lines before"}, lines[:3])
	assert.Equal(t, "  "+strings.Repeat("long ", 11)+"lo…", lines[3])
	assert.Equal(t, []string{
		"  the last", "", "✗ slow: job_execution_timeout: the script took longer than",
		"2s, and ignored TERM: killed", "",
	}, lines[12:17])
	assert.True(t, strings.HasPrefix(lines[17], "JOB "))
	assert.Equal(t, "the summary", lines[len(lines)-1])
	assert.True(t, strings.HasPrefix(lines[len(lines)-3], "slow "), "what has failed is last")
}

// crlf does what a terminal line does to the ends of lines.
type crlf struct{ *viewtest.Terminal }

func (c crlf) Write(p []byte) (int, error) {
	_, _ = c.Terminal.Write([]byte(strings.ReplaceAll(string(p), "\n", "\r\n")))
	return len(p), nil
}
