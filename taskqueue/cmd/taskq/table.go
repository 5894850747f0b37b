package main

import (
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// A table is text in columns, which are as wide as what is in them.
type table struct {
	out   io.Writer
	right []bool // which columns are numbers
	head  []string
	rows  [][]string
	// widths are those so far: what is written in parts keeps its
	// columns, unless later parts are wider.
	widths []int
}

// newTable begins a table. The name of a column whose values are numbers begins with
// a >.
func newTable(out io.Writer, head ...string) *table {
	t := &table{out: out}
	for _, h := range head {
		name, right := strings.CutPrefix(h, ">")
		t.head, t.right = append(t.head, name), append(t.right, right)
	}
	t.widths = make([]int, len(head))
	t.rows = [][]string{t.head}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// flush writes the rows that were added.
func (t *table) flush() error {
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], displaywidth.String(cell))
		}
	}
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			line += pad(cell, t.widths[i], t.right[i]) + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	t.rows = nil
	_, err := io.WriteString(t.out, b.String())
	return err
}

// pad makes s as wide as width.
func pad(s string, width int, right bool) string {
	space := strings.Repeat(" ", max(width-displaywidth.String(s), 0))
	if right {
		return space + s
	}
	return s + space
}
