package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// contests returns all budgets that are about time and allocations.
func contests() []contest {
	return slices.Concat(calls(), items(), workers(), queues(), crawls())
}

// measureAll measures every budget, and tells each row as soon as there is one. Growth takes minutes, so a quick run is
// without it, unless it is asked for.
func measureAll(cfg config, tell func(measure.Row)) {
	for _, c := range contests() {
		if cfg.only.MatchString(c.id) {
			for _, row := range c.rows(cfg) {
				tell(row)
			}
		}
	}
	for _, more := range []struct {
		id   string
		rows func(config) []measure.Row
	}{
		{"B8", delayedRows}, {"B10", shareRows}, {"B11", waitingRows}, {"B13", depthRows}, {"B14", growthRows}, {"B15", queuedRows},
	} {
		if cfg.only.MatchString(more.id) && (more.id != "B14" || !cfg.quick || cfg.chosen) {
			for _, row := range more.rows(cfg) {
				tell(row)
			}
		}
	}
}

// printBudgets measures for people.
func printBudgets(cfg config) {
	measure.PrintHeader(os.Stdout)
	measureAll(cfg, func(r measure.Row) { r.Print(os.Stdout) })
	fmt.Println("\nWhere a budget is in ns it holds for a quiet machine.")
}

// writeBudgets measures for a program.
func writeBudgets(cfg config) {
	measureAll(cfg, func(r measure.Row) { must(measure.Write(os.Stdout, measure.Record{Row: &r})) })
}

// A table is printed as it grows, one row after another.
type table struct{ widths []int }

func (t table) row(cells ...string) {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%-*s", t.widths[i], cell)
	}
	fmt.Println(strings.TrimRight(b.String(), " "))
}
