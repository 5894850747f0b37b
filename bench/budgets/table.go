package main

import (
	"fmt"
	"slices"
)

// contests returns all budgets that are about time and allocations.
func contests() []contest {
	return slices.Concat(calls(), items(), workers(), queues(), crawls())
}

// printBudgets measures every budget but growth.
func printBudgets(cfg config) {
	t := table{[]int{5, 66, 10, 10, 4}}
	t.row("budget", "what", "measured", "limit", "ok")
	for _, c := range contests() {
		if cfg.only.MatchString(c.id) {
			printContest(t, cfg, c)
		}
	}
	for _, more := range []func(table, config){printWaiting, printSeeing, printDepth, printQueued} {
		more(t, cfg)
	}
	fmt.Println("\nB14 is a table of its own: make growth. Times of B8 and B9 in ns hold for a quiet machine.")
}

func printContest(t table, cfg config, c contest) {
	ours, stop := c.ours()
	defer stop()
	for _, p := range c.peers {
		r := ratio(cfg.rounds, ours, p.run)
		if p.limit == 0 {
			t.row(c.id, c.what+" / "+p.name, fmt.Sprintf("%.2f", r), "", "")
			continue
		}
		t.row(c.id, c.what+" / "+p.name, fmt.Sprintf("%.2f", r), fmt.Sprint(p.limit), kept(r, p.limit))
	}
	n := enough(ours)
	if c.ns > 0 {
		all := make([]float64, cfg.rounds)
		for i := range all {
			all[i] = took(ours, n)
		}
		ns := median(all)
		t.row(c.id, c.what, fmt.Sprintf("%.0f ns", ns), fmt.Sprintf("%.0f ns", c.ns), kept(ns, c.ns))
	}
	if c.allocs >= 0 {
		a := allocated(ours, max(n, 100)) / float64(max(1, c.tasks))
		t.row(c.id, c.what+", allocations", fmt.Sprintf("%.2f", a), fmt.Sprint(c.allocs), kept(a, c.allocs+0.05))
	}
}
