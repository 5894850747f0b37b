package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// reasons say why a budget is missed and what it would cost to keep it, where that is known. They carry no figures:
// those are the table's.
var reasons = map[string]string{
	"B5": "A result has an index, a value and an error, and most of the time goes into writing those: the row beside results of the same size says what is left. " +
		"With the error alone for items that fail it would be faster, and a result could not be passed on by itself.",
	"B5b": "Each item is handed from the sequence to a worker and its result back, since a sequence is pulled one by one and is not read ahead by more than the limit. " +
		"To hand out several at a time would be faster, and an item that waits for the next would wait for ever. ForkJoin, which has a slice, does hand out several.",
	"B8": "The budget is in nanoseconds of a quiet machine. A delayed task reads the clock and may move a timer; without that a timer would have to be armed while nothing is due.",
	"B10": "A goroutine begins with a small stack, and the library's frames between its start and the handler, and those of Await, make it grow. They are what tells of panics and Goexit, joins children and " +
		"looks for cycles of waits. The share of the library is large because the work of this crawl is small: a hundred random letters.",
	"B11": "A task whose ctx is asked for Done makes an inner scope and a standard context then, where by hand there is the context alone.",
	"T1":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T2":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"T8":  "See [the costs of taskqueue](taskqueue.md#costs).",
	"L1":  "See [the costs of locks](locks.md#costs).",
	"L4":  "See [the costs of locks](locks.md#costs).",
	"L5":  "See [the costs of locks](locks.md#costs).",
	"K1":  "See [the figures of kvqueue](kvqueue.md#figures).",
}

// missed is the section about budgets that are missed.
func (all *results) missed() string {
	var ids []string
	for _, r := range all.rows {
		if r.Verdict() == measure.Over && !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.SortStableFunc(ids, func(a, b string) int { return number(a) - number(b) })
	var b strings.Builder
	b.WriteString("## Where a budget is missed\n\n")
	for _, id := range ids {
		reason := reasons[id]
		if reason == "" {
			reason = "Nobody has said why yet."
		}
		if id[0] == 'B' {
			reason += fmt.Sprintf(" A profile: `make budgets ONLY=%s PROFILE=cpu.out`, then `go tool pprof -top out/bin/budgets cpu.out`.", id)
		}
		fmt.Fprintf(&b, "- **%s**: %s\n", id, reason)
	}
	return b.String() + "\n"
}
