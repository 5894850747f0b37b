package main

import (
	"fmt"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// machine says where, when and how it was measured.
func (all *results) machine() string {
	var first measure.Ran
	took, quick := 0.0, false
	failed := ""
	for _, ran := range all.ran {
		if strings.HasPrefix(ran.Missing, hasFailed) {
			failed += fmt.Sprintf("**%s: %s.**\n\n", ran.Program, ran.Missing)
		} else if ran.Missing != "" {
			continue
		}
		if first.Go == "" {
			first = ran
		}
		took, quick = took+ran.Took, quick || ran.Quick
	}
	how := "`make bench`"
	if quick {
		how = "`make bench QUICK=1`, with fewer and shorter turns than `make bench` has"
	}
	return fmt.Sprintf("Measured on %s with %s, on %d cores of %s, in %.0f s, by %s.\n\n", first.Began, first.Go, first.Cores, first.System, took, how) + failed
}

// These make a run noisy: a spread of the middle row, and more processes that want a core than there are.
const (
	wideSpread = 0.15
	manyWait   = 1.0
)

// noise says how far the figures are to be trusted.
func (all *results) noise() string {
	var spreads measure.Sample
	judged, unclear := 0, 0
	for _, r := range all.rows {
		if r.Ratio {
			spreads = append(spreads, r.Value().Spread())
		}
		if v := r.Verdict(); v != measure.NoBudget {
			judged++
			if v == measure.Unclear || v == measure.Single {
				unclear++
			}
		}
	}
	if len(spreads) == 0 {
		return ""
	}
	busy, cores := all.busiest()
	middle := spreads.Median()
	var b strings.Builder
	fmt.Fprintf(&b, "Half of the ratios have an interval that is wider than %.0f %% of the median; of %d budgets %d have no verdict.", 100*middle, judged, unclear)
	if busy >= 0 {
		fmt.Fprintf(&b, " Before the programs began, up to %.1f processes wanted the %d cores.", busy, cores)
	}
	if middle > wideSpread || busy > manyWait*float64(cores) {
		b.WriteString("\n\n**The noise was high**, as where other programs use the machine: read the intervals, not the medians, and measure a row again before you conclude from it. A verdict of such a run is one about a busy machine.")
	}
	return b.String() + "\n\n"
}

// noiseOfCurves says how far the curves are to be trusted.
func (all *results) noiseOfCurves() string {
	var spreads measure.Sample
	without := 0
	for _, c := range all.curves {
		for _, p := range c.Points {
			spreads = append(spreads, p.X.Spread())
		}
		if _, why := fitted(c); why != "" {
			without++
		}
	}
	if len(spreads) == 0 {
		return ""
	}
	busy, cores := all.busiest()
	text := fmt.Sprintf("Half of the points have an interval that is wider than %.0f %% of the median; of %d curves %d have no fit.", 100*spreads.Median(), len(all.curves), without)
	if spreads.Median() > wideSpread || busy > manyWait*float64(cores) {
		text += fmt.Sprintf(" Up to %.1f processes wanted the %d cores before.\n\n**The noise was high**, as where other programs use the machine: the curves show that noise as much as the library. "+
			"Measure again before you conclude from one.", busy, cores)
	}
	return text + "\n\n"
}

// busiest returns the highest load that a program has found, negative if none was told.
func (all *results) busiest() (load float64, cores int) {
	load = -1
	for _, ran := range all.ran {
		load, cores = max(load, ran.Load), max(cores, ran.Cores)
	}
	return load, cores
}
