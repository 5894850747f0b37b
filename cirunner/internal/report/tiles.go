package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/cirunner/internal/board"
	"github.com/ambit-go/ambit/cirunner/internal/plan"
)

// A tile is a number that a reader looks for first.
type tile struct{ Name, Text, Class string }

// tiles are how the run has ended, how long it has taken, and what its jobs have measured.
func tiles(p Page) []tile {
	n := map[plan.State]int{}
	var waited time.Duration
	for _, j := range p.Jobs {
		n[j.State]++
		waited = max(waited, j.Waited)
	}
	all := []tile{outcome(n, p.Stopped), {"Time", Duration(p.Took), ""}, {"Jobs", fmt.Sprint(len(p.Jobs)), ""}}
	for _, s := range []plan.State{plan.Failed, plan.Warned, plan.Canceled} {
		if n[s] > 0 {
			all = append(all, tile{"Jobs: " + s.String(), fmt.Sprint(n[s]), s.String()})
		}
	}
	sums := SumUp(p.Jobs)
	switch {
	case sums.Failed > 0:
		all = append(all, tile{"Tests: failed", fmt.Sprintf("%d of %d", sums.Failed, sums.Tests), "failed"})
	case sums.Tests > 0:
		all = append(all, tile{"Tests", fmt.Sprint(sums.Tests), ""})
	}
	if sums.Measured > 0 {
		all = append(all, tile{"Coverage", fmt.Sprintf("%.1f%%", sums.Coverage), ""})
	}
	if waited >= told {
		all = append(all, tile{"Longest wait", Duration(waited), ""})
	}
	return all
}

// outcome is how the run has ended as a whole.
func outcome(n map[plan.State]int, stopped string) tile {
	t := tile{Name: "Pipeline", Text: "passed", Class: "success"}
	switch {
	case n[plan.Failed] > 0:
		t.Text, t.Class = "failed", "failed"
	case stopped != "" || n[plan.Canceled] > 0:
		t.Text, t.Class = "canceled", "canceled"
	case n[plan.Blocked] > 0:
		t.Text, t.Class = "blocked", "warning"
	case n[plan.Warned] > 0:
		t.Text, t.Class = "passed, with warnings", "warning"
	case n[plan.Succeeded] == 0:
		t.Text, t.Class = "nothing was run", ""
	}
	return t
}

// data says what a job has measured, in its row.
func data(j board.Job) string {
	var parts []string
	if j.Tests != nil {
		text := fmt.Sprintf("tests: %d", j.Tests.Total)
		if j.Tests.Failed > 0 {
			text += fmt.Sprintf(", %d failed", j.Tests.Failed)
		}
		parts = append(parts, text)
	}
	if c := Coverage(j); c != "" {
		parts = append(parts, "coverage: "+c)
	}
	return strings.Join(parts, "; ")
}
