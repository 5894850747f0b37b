package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// The budgets that are compared with an older ambit have to compile with it.
const compared = "B1|B2|B3|B4|B7|B11"

// printRaw prints a line for each work: budget, what, and how much of it.
func printRaw(cfg config) {
	for _, c := range contests() {
		if cfg.only.MatchString(c.id) {
			run, stop := c.ours()
			n := run.Enough(cfg.slice)
			fmt.Printf("%s\t%s, ns\t%g\n", c.id, c.what, min(run.Took(n), run.Took(n), run.Took(n)))
			if c.allocs >= 0 {
				fmt.Printf("%s\t%s, allocations\t%g\n", c.id, c.what, allocated(run, max(n/4, 100), float64(max(1, c.tasks))).number)
			}
			stop()
		}
	}
	if cfg.only.MatchString("B11") {
		for _, w := range waits() {
			w.ours(cfg.waiting)
			fmt.Printf("B11\ttasks %s, bytes each\t%g\n", w.name, w.ours(cfg.waiting))
		}
	}
}

// compareWith has this program and older take turns, as processes of their own.
func compareWith(older, only string, cfg config) {
	if only == "" {
		only = compared
	}
	self, err := os.Executable()
	must(err)
	args := []string{"-raw", "-only", only, "-waiting", strconv.Itoa(cfg.waiting)}
	var order []string
	was, is, ratios := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for range cfg.rounds {
		order = rawRun(older, args, was)
		rawRun(self, args, is)
		for _, what := range order {
			last := len(was[what]) - 1
			if last < len(is[what]) && was[what][last] != 0 {
				ratios[what] = append(ratios[what], is[what][last]/was[what][last])
			}
		}
	}
	t := table{[]int{5, 66, 10, 10, 10}}
	t.row("budget", "what", "before", "now", "now/before")
	for _, what := range order {
		id, text, _ := strings.Cut(what, "\t")
		r := "-"
		if len(ratios[what]) > 0 {
			r = fmt.Sprintf("%.2f", median(ratios[what]))
		}
		if len(is[what]) > 0 {
			t.row(id, text, fmt.Sprintf("%.5g", median(was[what])), fmt.Sprintf("%.5g", median(is[what])), r)
		}
	}
}

// rawRun adds what a program measures to all, and returns its rows in order.
func rawRun(program string, args []string, all map[string][]float64) (order []string) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(err)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		i := strings.LastIndexByte(lines.Text(), '\t')
		what := lines.Text()[:i]
		v, err := strconv.ParseFloat(lines.Text()[i+1:], 64)
		must(err)
		all[what] = append(all[what], v)
		order = append(order, what)
	}
	return order
}
