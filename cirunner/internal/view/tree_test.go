package view

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func drawn(jobs []board.Job, width, height int) []string {
	f := frame{jobs: jobs, now: noon, begin: noon.Add(-65 * time.Second), width: width, height: height}
	var plainLines []string
	for _, l := range f.draw() {
		plainLines = append(plainLines, strings.TrimRight(ansi.Strip(l), " "))
	}
	return plainLines
}

func TestTheTree(t *testing.T) {
	begin := noon.Add(-3 * time.Second)
	jobs := []board.Job{
		{Name: "compile", Stage: "build", State: plan.Succeeded, Attempt: 1, Begin: begin, End: begin.Add(time.Second)},
		{Name: "unit 1/2", Stage: "test", State: plan.Running, Phase: "script", Attempt: 2, Begin: begin, Last: "ok 日本"},
		{Name: "unit 2/2", Stage: "test", State: plan.Running, Phase: "services", Attempt: 1, Begin: begin},
		{Name: "lint", Stage: "test", State: plan.Failed, Cause: pipeline.ScriptFailure, Why: "exit status 1", Attempt: 1, Begin: begin, End: begin.Add(100 * time.Millisecond)},
		{Name: "style", Stage: "test", State: plan.Warned, Why: "exit status 2", Attempt: 1, Begin: begin, End: begin},
		{Name: "again", Stage: "test", State: plan.Ready, Why: "exit status 3", Attempt: 1, Begin: begin, End: begin},
		{Name: "ship", Stage: "deploy", State: plan.Waiting},
		{Name: "page", Stage: "deploy", State: plan.Manual, Why: "runs only when asked for"},
	}
	assert.Equal(t, []string{
		"4 of 8 jobs, 1 failed  1m05s",
		"build",
		"└ ✓ compile                1.0s",
		"test",
		"├ ● unit 1/2 (attempt 2)   3.0s  ok 日本",
		"├ ● unit 2/2               3.0s  services:",
		"├ ✗ lint                   0.1s  exit status 1",
		"├ ! style                  0.0s  exit status 2, which is allowed",
		"└ · again                  0.0s  to be tried again: exit status 3",
		"deploy",
		"├ · ship",
		"└ ▸ page                         manual: runs only when asked for",
	}, drawn(jobs, 80, 24))
	assert.Equal(t, []string{
		"4 of 8 jobs, 1 failed  1m05s",
		"✓ build  1 success",
		"test",
		"├ ● unit 1/2 (attempt 2)   3.0s  ok 日本",
		"├ ● unit 2/2               3.0s  services:",
		"├ ✗ lint                   0.1s  exit status 1",
		"├ ! style                  0.0s  exit status 2, which is allowed",
		"└ · again                  0.0s  to be tried again: exit status 3",
		"· deploy  1 waiting, 1 manual",
	}, drawn(jobs, 80, 9))
	assert.Equal(t, []string{
		"4 of 8 jobs, 1 failed  1m05s",
		"✓ build  1 success",
		"test",
		"├ ● unit 1/2 (attempt 2)   3.0s  ok 日本",
		"├ ● unit 2/2               3.0s  services:",
		"├ ✗ lint                   0.1s  exit status 1",
		"└ 1 ready, 2 running, 1 failed, 1 warning",
		"· deploy  1 waiting, 1 manual",
	}, drawn(jobs, 80, 8))
}

// The stages of a child pipeline stand below that of the job that starts it, also if they have come last.
func TestTheTreeHasChildPipelines(t *testing.T) {
	begin := noon.Add(-3 * time.Second)
	done := func(name, stage, parent string) board.Job {
		return board.Job{Name: name, Stage: stage, Parent: parent, State: plan.Succeeded, Attempt: 1, Begin: begin, End: begin.Add(time.Second)}
	}
	jobs := []board.Job{
		done("compile", "build", ""), done("down", "test", ""), done("side", "test", ""), {Name: "ship", Stage: "deploy"},
		done("side/a", "side/test", "side"), done("down/unit", "down/test", "down"), done("down/more", "down/test", "down"),
		{Name: "down/bad", Stage: "down/deploy", Parent: "down", State: plan.Failed, Why: "exit status 1", Attempt: 1, Begin: begin, End: begin},
		{Name: "down/more/low", Stage: "down/more/test", Parent: "down/more", State: plan.Running, Phase: "script", Attempt: 1, Begin: begin, Last: "busy"},
	}
	assert.Equal(t, []string{
		"7 of 9 jobs, 1 failed  1m05s",
		"build",
		"└ ✓ compile   1.0s",
		"test",
		"├ ✓ down      1.0s",
		"└ ✓ side      1.0s",
		"↳ pipeline of down",
		"  test",
		"  ├ ✓ unit    1.0s",
		"  └ ✓ more    1.0s",
		"  ↳ pipeline of down/more",
		"    test",
		"    └ ● low   3.0s  busy",
		"  deploy",
		"  └ ✗ bad     0.0s  exit status 1",
		"↳ pipeline of side",
		"  test",
		"  └ ✓ a       1.0s",
		"deploy",
		"└ · ship",
	}, drawn(jobs, 80, 24))
	assert.Contains(t, drawn(jobs, 80, 14), "  ✓ test  2 success")
}

// Whatever the jobs and the terminal are, nothing is drawn outside.
func TestTheTreeFits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var jobs []board.Job
		for i := range r.IntN(60) {
			jobs = append(jobs, board.Job{
				Name: strings.Repeat("näme日", r.IntN(8)), Parent: []string{"", "näme日", "down"}[r.IntN(3)], Stage: fmt.Sprint("stage ", i/(1+r.IntN(9))),
				State: plan.State(r.IntN(int(plan.Canceled) + 1)), Attempt: r.IntN(3), Begin: noon, End: noon,
				Why: strings.Repeat("why ", r.IntN(40)), Last: strings.Repeat("日", r.IntN(90)), Phase: "script",
			})
		}
		width, height := 1+r.IntN(120), 1+r.IntN(40)
		lines := drawn(jobs, width, height)
		require.LessOrEqual(t, len(lines), height)
		for _, l := range lines {
			require.LessOrEqual(t, ansi.StringWidth(l), width, "%q", l)
		}
	}
}

func TestSVG(t *testing.T) {
	svg := SVG([]string{bold.Render("a<b") + " x", red.Render("✗") + " fails"}, 20)
	assert.Contains(t, svg, `font-weight="bold">a&lt;b</text>`)
	assert.Contains(t, svg, ` fill="#f4726b">✗</text>`)
	assert.NotContains(t, svg, "\x1b")
}
