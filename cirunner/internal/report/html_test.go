//go:build unix

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/jobreport"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// evil is a text that would like to be more.
const evil = `</pre><script>document.title="taken"</script><img src="http://127.0.0.1:1/x"> & "quotes"`

// page returns a report with a job of each kind, and its logs.
func page(t *testing.T) Page {
	t.Helper()
	dir := t.TempDir()
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	log := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	return Page{
		Name: "ci.yml", Begin: begin, Took: 100 * time.Second, Stages: []string{"build", "test", "empty"}, Logs: dir,
		Jobs: []board.Job{
			{Name: "compile", Stage: "build", State: plan.Succeeded, Attempt: 1, Begin: at(0), End: at(20), Log: log("1", "\x1b[32mgreen\x1b[0m\nlast\n")},
			{Name: evil, Stage: "test", State: plan.Failed, Attempt: 1, Begin: at(20), End: at(60), Cause: pipeline.ScriptFailure, Why: "exit status 1 " + evil, Log: log("2", evil+"\nthe reason\n"), Needs: []string{"compile", evil}},
			{
				Name: "flaky", Stage: "test", State: plan.Succeeded, Attempt: 2, Begin: at(60), End: at(100), Log: log("3", ""),
				Past:   []board.Try{{Begin: at(20), End: at(30), Cause: pipeline.ScriptFailure, Why: "exit status 9"}},
				Phases: []board.Phase{{Name: "preparing", Begin: at(60)}, {Name: "script", Begin: at(70)}, {Name: "after_script", Begin: at(95)}},
			},
			{Name: "skipped", Stage: "test", State: plan.Skipped, Why: "needs something"},
		},
	}
}

// The stages of a child pipeline have a heading, below the job that starts it; a stage without jobs is there, too.
func TestAReportHasChildPipelines(t *testing.T) {
	job := func(name, stage, parent string) board.Job {
		return board.Job{Name: name, Stage: stage, Parent: parent, State: plan.Failed}
	}
	text := written(t, Page{
		Stages: []string{"build", "test", "down/test", "down/deploy", "deploy"},
		Jobs:   []board.Job{job("down", "test", ""), job("ship", "deploy", ""), job("down/unit", "down/test", "down"), job("down/ship", "down/deploy", "down")},
	})
	var at []int
	for _, part := range []string{
		`<h2>build</h2>`, `<h2>test</h2>`, `</span> down <`, `<h2 class="child">Pipeline of down</h2>`, `<h3>test</h3>`, `</span> unit <`,
		`<h3>deploy</h3>`, `</span> ship <`, `<h2>deploy</h2>`,
	} {
		at = append(at, strings.Index(text, part))
	}
	assert.IsIncreasing(t, at, "%v", at)
	assert.GreaterOrEqual(t, at[0], 0, text)
	assert.Contains(t, text, `<a href="#job-3">down/unit</a>`, "its whole name, where there is no heading")
}

func written(t *testing.T, p Page) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, WriteHTML(path, p))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// A page is opened from wherever it was put: nothing is loaded, and what a job has
// said is text.
func TestAReportIsSelfContained(t *testing.T) {
	text := written(t, page(t))
	for _, bad := range []string{"<script", "<img", `="http`, "@import", "url(", "\x1b"} {
		assert.NotContains(t, text, bad)
	}
	assert.Equal(t, 1, strings.Count(text, "<link "), "that of the icon, which is empty")
	assert.NotContains(t, text, "ZgotmplZ")
	assert.Contains(t, text, "the reason")
	assert.Contains(t, text, "exit status 9")
}

func TestTheBarsOfAJob(t *testing.T) {
	v := newView(page(t))
	assert.Equal(t, []bar{
		{"past", "script: 10s", 20, 10},
		{"success aside", "preparing: 10s", 60, 10},
		{"success", "script: 25s", 70, 25},
		{"success aside", "after_script: 5.0s", 95, 5},
	}, v.Groups[1].Jobs[1].Bars)
	assert.Empty(t, v.Groups[1].Jobs[2].Bars)
	assert.Empty(t, v.Groups[2].Jobs, "a stage without jobs is one")
	assert.Equal(t, []tick{{0, "0"}, {30, "30s"}, {60, "1m"}, {90, "1m30s"}}, v.Axis)
}

// A job that has waited for room has a bar for that, up to its first attempt; a moment is not told.
func TestTheBarOfAWait(t *testing.T) {
	p := page(t)
	p.Jobs[2].Ready, p.Jobs[2].Waited = begin.Add(10*time.Second), 12*time.Second
	p.Jobs[1].Ready, p.Jobs[1].Waited = p.Jobs[1].Begin.Add(-time.Millisecond), time.Millisecond
	jobs := newView(p).Groups[1].Jobs
	assert.Equal(t, bar{"wait", "waiting for room: 10s", 10, 10}, jobs[1].Bars[0])
	assert.Equal(t, "12s", jobs[1].Wait())
	assert.Equal(t, "failed", jobs[0].Bars[0].Class)
	assert.Empty(t, jobs[0].Wait())
}

// The report begins with how the run has ended as a whole, how many jobs have not ended well, and what was measured.
func TestTheTilesOfARun(t *testing.T) {
	p := page(t)
	assert.Equal(t, []tile{{"Pipeline", "failed", "failed"}, {"Time", "1m40s", ""}, {"Jobs", "4", ""}, {"Jobs: failed", "1", "failed"}}, tiles(p))
	p.Jobs[0].Tests, p.Jobs[0].Coverage = &jobreport.Tests{Total: 10}, "80"
	p.Jobs[2].Coverage, p.Jobs[2].Waited = "90", 5*time.Second
	assert.Equal(t, []tile{{"Tests", "10", ""}, {"Coverage", "85.0%", ""}, {"Longest wait", "5.0s", ""}}, tiles(p)[4:])
	p.Jobs[0].Tests.Failed = 2
	assert.Contains(t, tiles(p), tile{"Tests: failed", "2 of 10", "failed"})
	text := written(t, p)
	assert.Contains(t, text, `<span class="data">tests: 10, 2 failed; coverage: 80%</span>`)
	assert.NotContains(t, text, `class="bare"`)
	assert.Contains(t, written(t, page(t)), `<main class="bare">`, "no column without anything in it")

	for _, test := range []struct {
		states  []plan.State
		stopped string
		want    tile
	}{
		{[]plan.State{plan.Succeeded}, "", tile{"Pipeline", "passed", "success"}},
		{[]plan.State{plan.Succeeded, plan.Warned}, "", tile{"Pipeline", "passed, with warnings", "warning"}},
		{[]plan.State{plan.Warned, plan.Canceled}, "", tile{"Pipeline", "canceled", "canceled"}},
		{[]plan.State{plan.Succeeded}, "a signal", tile{"Pipeline", "canceled", "canceled"}},
		{[]plan.State{plan.Canceled, plan.Failed}, "a signal", tile{"Pipeline", "failed", "failed"}},
		{[]plan.State{plan.Succeeded, plan.Blocked}, "", tile{"Pipeline", "blocked", "warning"}},
		{[]plan.State{plan.Skipped}, "", tile{"Pipeline", "nothing was run", ""}},
	} {
		var jobs []board.Job
		for _, s := range test.states {
			jobs = append(jobs, board.Job{State: s})
		}
		assert.Equal(t, test.want, tiles(Page{Jobs: jobs, Stopped: test.stopped})[0], "%v", test.states)
	}
}

// The commit and the host of the run stand at the top, as text.
func TestTheFactsAreAtTheTop(t *testing.T) {
	p := page(t)
	p.Facts = []Fact{{"Branch", "main"}, {"Commit", "152891c4 " + evil}}
	text := written(t, p)
	assert.Contains(t, text, "<dt>Branch</dt> <dd>main</dd>")
	assert.Contains(t, text, "<dt>Commit</dt> <dd>152891c4 &lt;/pre&gt;")
}

// The axis names times that people count in.
func TestTicksAreRound(t *testing.T) {
	for took, want := range map[time.Duration]string{
		3 * time.Second: "0 0.5s 1s 1.5s 2s 2.5s", 50 * time.Second: "0 10s 20s 30s 40s", 80 * time.Second: "0 15s 30s 45s 1m 1m15s",
		7 * time.Minute: "0 2m 4m 6m", 100 * time.Minute: "0 30m 1h 1h30m", 17 * time.Hour: "0 3h 6h 9h 12h 15h", 20 * 24 * time.Hour: "0 4d 8d 12d 16d",
	} {
		var got []string
		for _, tick := range newTimeline(begin, took).ticks() {
			got = append(got, tick.Text)
		}
		assert.Equal(t, want, strings.Join(got, " "), "%v", took)
	}
}

// Whatever the clock has done, bars are on the line.
func TestTheTimelineIsNeverLeft(t *testing.T) {
	for _, took := range []time.Duration{0, -time.Hour, time.Millisecond, time.Second, time.Minute, 100 * time.Hour, 1e6 * time.Hour} {
		line := newTimeline(begin, took)
		ticks := line.ticks()
		assert.LessOrEqual(t, len(ticks), 7, "%v: %v", took, ticks)
		for _, b := range line.bars("x", begin.Add(-time.Hour), begin.Add(1000*time.Hour), nil) {
			assert.GreaterOrEqual(t, b.Left, 0.0)
			assert.LessOrEqual(t, b.Left+b.Width, 100.0)
		}
	}
}

func TestTheEndOfALogIsInTheReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	require.NoError(t, os.WriteFile(path, []byte(all.String()), 0o644))
	tail := readTail(path, 100)
	assert.LessOrEqual(t, len(tail.Text), 100)
	assert.True(t, strings.HasPrefix(tail.Text, "line 989\n"), "it begins with a whole line: %s", tail.Text)
	assert.True(t, strings.HasSuffix(tail.Text, "line 999\n"))
	assert.Equal(t, fmt.Sprintf("The first %d of %d bytes are left out; all is in %s.", all.Len()-len(tail.Text), all.Len(), path), tail.Note)

	assert.Equal(t, logTail{Text: all.String()}, readTail(path, 1<<20))
	assert.Equal(t, logTail{}, readTail("", 100))
	assert.Contains(t, readTail(filepath.Join(t.TempDir(), "none"), 100).Note, "no such file")
	assert.Contains(t, readTail("/dev/null", 100).Note, "is no file")
}

func TestAReportThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, WriteHTML(filepath.Join(dir, "none", "x.html"), page(t)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o755))
	require.Error(t, WriteHTML(filepath.Join(dir, "taken"), page(t)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")
}

// Every state has a mark, on the page and in its style.
func TestEveryStateHasAMark(t *testing.T) {
	for s := plan.Waiting; s <= plan.Canceled; s++ {
		assert.NotEmpty(t, marks[s], "%s", s)
	}
}
