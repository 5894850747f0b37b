package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// A group is a table of the page of performance.
type group struct {
	name, title, intro string
	holds              func(id string) bool
}

func of(ids ...string) func(string) bool {
	return func(id string) bool { return slices.Contains(ids, id) }
}

func letter(l string) func(string) bool {
	return func(id string) bool { return strings.HasPrefix(id, l) }
}

var groups = []group{
	{"async", "async", "Tasks, futures, many items and a race, beside the same by hand, errgroup, conc, taskgroup, pond and ants. A unit is a task or an item.", of("B1", "B2", "B3", "B4", "B5", "B5b", "B6", "B15")},
	{"crawl", "async: a whole program", "The crawl of the blog that ambit comes from: 19,032 pages, four tasks a page, each with a time limit; beside the blog's own library, rewritten from its description, and errgroup with time limits by hand. A unit is a task.", of("B10")},
	{"scheduler", "scheduler", "A worker beside an actor on a channel and a serializer as grpc has it. A unit is a function that is posted, or scheduled and cancelled.", of("B7", "B8")},
	{"jobqueue", "jobqueue", "Beside the work queues of client-go and controller-runtime. A unit is a job.", of("B9")},
	{"waiting", "async: waiting and depth", "The memory of a task that waits, and the cost of a level or a call deep in a tree of scopes, beside the same near its root.", of("B11", "B13")},
	{"growth", "Growth", "Nanoseconds of processor time of a unit, among many beside among few.", of("B14")},
	{"taskqueue", "taskqueue", "Beside asynq on the same Redis server, whose append-only file is synced every second, and beside river in SQLite files and on the same PostgreSQL server, where each step is on the disk.", letter("T")},
	{"locks", "locks", "Each beside other libraries on the same server. The program starts the servers itself.", letter("L")},
	{"kvqueue", "kvqueue", "Beside the queue recipes and etcd's own queue, on one member of etcd that waits for its disk.", letter("K")},
}

// performance is the page of the budgets.
func (all *results) performance(docs string) (string, error) {
	var b strings.Builder
	b.WriteString("# Performance\n\n" + generated)
	b.WriteString("Every budget of ambit, beside what people use for the same work. `make bench` measures all of it and writes this page.\n" +
		"The command at the end of a row measures the budget of that row alone.\n\n")
	b.WriteString(all.machine() + all.noise() + explained)
	for _, g := range groups {
		rows := all.rowsOf(g)
		b.WriteString("## " + g.title + "\n\n" + g.intro + "\n\n")
		if len(rows) == 0 {
			b.WriteString("Not measured in this run" + all.why(g) + ".\n\n")
			continue
		}
		drawn, err := drawBudgets(filepath.Join(docs, "pictures", "performance-"+g.name+".svg"), rows)
		if err != nil {
			return "", err
		}
		if drawn {
			fmt.Fprintf(&b, "![The share of its budget that each row takes, with the interval of its median](pictures/performance-%s.svg)\n\n", g.name)
		}
		b.WriteString(tableOf(rows) + "\n")
	}
	b.WriteString(all.missed())
	return b.String(), nil
}

const generated = "<!-- Made by make bench. Words written here by hand are gone after the next run. -->\n\n"

const explained = `## How to read it

- All sides of a row take turns in one process, each of them being the first in turn. *ours / theirs* is the median of the ratios of the turns; below 1 ours is faster.
- In brackets stands the interval in which the true median lies, with a probability of at least 95 %, whatever the distribution of the noise (the order statistics of the
  sign test; the whole range where there are fewer than 6 turns).
- A verdict is given only where the spread allows one: *within budget* if the whole interval keeps the budget, *over* if all of it misses the budget, else none.
- Allocations and bytes are those of a unit, ours and theirs. They are counted, and do not depend on how busy the machine is.
- A row without a budget is only good to know.

`

// rowsOf returns the rows of a group.
func (all *results) rowsOf(g group) (rows []measure.Row) {
	for _, r := range all.rows {
		if g.holds(r.ID) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b measure.Row) int { return number(a.ID) - number(b.ID) })
	return rows
}

// number is that of a budget, for the order: B5b is between B5 and B6.
func number(id string) (n int) {
	_, _ = fmt.Sscanf(id[1:], "%d", &n)
	if strings.HasSuffix(id, "b") {
		return 2*n + 1
	}
	return 2 * n
}

func tableOf(rows []measure.Row) string {
	var b strings.Builder
	b.WriteString("| | work | beside | ours | theirs | measured | budget | verdict | allocations | bytes | alone |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		ours, theirs := r.Amounts()
		allocs, bytes := memoryOf(r.Memory)
		cells := []string{r.ID, escaped(r.What), escaped(r.Peer), ours, theirs, r.Measured(), r.Bound(), r.Verdict().String(), allocs, bytes, fmt.Sprintf("`make bench ONLY=%s`", r.ID)}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func escaped(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

func memoryOf(m *measure.Memory) (allocs, bytes string) {
	switch {
	case m == nil:
		return "", ""
	case m.Beside:
		return fmt.Sprintf("%.1f, %.1f", m.Allocs, m.PeerAllocs), fmt.Sprintf("%.0f, %.0f", m.Bytes, m.PeerBytes)
	}
	return fmt.Sprintf("%.1f", m.Allocs), fmt.Sprintf("%.0f", m.Bytes)
}

// why says why a group was not measured.
func (all *results) why(g group) string {
	for _, ran := range all.ran {
		if ran.Program == g.name && ran.Missing != "" {
			return ": " + ran.Missing
		}
	}
	if g.name == "growth" {
		return ": it takes minutes, so a quick run is without it. `make bench ONLY=B14` measures it"
	}
	return ""
}
