//go:build linux && kvbudgets

package budgets

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A row is a row as the program reads it that writes the pages: package bench/internal/measure has its meaning.
type row struct {
	ID     string    `json:"id"`
	What   string    `json:"what"`
	Peer   string    `json:"peer,omitempty"`
	Unit   string    `json:"unit"`
	Ours   []float64 `json:"ours"`
	Theirs []float64 `json:"theirs,omitempty"`
	Ratio  bool      `json:"ratio,omitempty"`
	Budget budget    `json:"budget"`
	Once   bool      `json:"once,omitempty"`
}

type budget struct {
	Limit   float64 `json:"limit,omitempty"`
	AtLeast bool    `json:"atLeast,omitempty"`
	Set     bool    `json:"set,omitempty"`
}

func atMost(limit float64) budget  { return budget{limit, false, true} }
func atLeast(limit float64) budget { return budget{limit, true, true} }

// beside is a row of a ratio.
func beside(id, what string, ours []float64, peer string, theirs []float64, unit string, of budget) row {
	return row{ID: id, What: what, Peer: peer, Unit: unit, Ours: ours, Theirs: theirs, Ratio: true, Budget: of}
}

// tell prints a row, for people or, where that has started the tests, for the program.
func tell(r row) {
	if os.Getenv("BENCH_RECORDS") != "" {
		text, err := json.Marshal(map[string]row{"row": r})
		if err != nil {
			panic(err)
		}
		fmt.Printf("measured: %s\n", text)
		return
	}
	what, value, unit := r.What, r.Ours, r.Unit
	if r.Peer != "" {
		what += " / " + r.Peer
	}
	if r.Ratio {
		value, unit = ratios(r.Ours, r.Theirs), "×"
	}
	line := fmt.Sprintf("%-4s %-90s %.4g %s", r.ID, what, median(value), unit)
	if len(value) > 1 {
		line += fmt.Sprintf(" (%.4g to %.4g)", slices.Min(value), slices.Max(value))
	}
	if r.Budget.Set {
		line += fmt.Sprintf(", budget %s %g", map[bool]string{true: "≥", false: "≤"}[r.Budget.AtLeast], r.Budget.Limit)
	}
	fmt.Println(line)
}

func ratios(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return all
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// turns has sides take turns for so many rounds, each of them being the first in turn, and returns the results of each.
func turns(rounds int, sides ...func() result) [][]result {
	all := make([][]result, len(sides))
	for round := range rounds {
		for i := range sides {
			i = (i + round) % len(sides)
			all[i] = append(all[i], sides[i]())
		}
	}
	return all
}

// valuesOf are one value of each result.
func valuesOf(all []result, of func(result) float64) (some []float64) {
	for _, r := range all {
		some = append(some, of(r))
	}
	return some
}

func rate(r result) float64      { return r.rate }
func conflicts(r result) float64 { return r.conflicts }
func fairness(r result) float64  { return r.fairness }
