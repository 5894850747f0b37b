package top

import (
	"fmt"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// A column of a table.
type column struct {
	title string
	right bool // of numbers
	// drop says which columns are left out first where there is no room: those with the
	// greatest number. 0: never.
	drop int
	most int // how wide it is at most; 0: no bound
}

const gap = 2 // between columns

// layout returns how wide each column is; 0: it is left out.
func layout(width int, cols []column, rows [][]string) []int {
	widths := make([]int, len(cols))
	sum := -gap
	for i, c := range cols {
		widths[i] = displaywidth.String(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], displaywidth.String(row[i]))
		}
		if c.most > 0 {
			widths[i] = max(min(widths[i], c.most), displaywidth.String(c.title))
		}
		sum += widths[i] + gap
	}
	for sum > width {
		out := -1
		for i, c := range cols {
			if widths[i] > 0 && c.drop > 0 && (out < 0 || c.drop > cols[out].drop) {
				out = i
			}
		}
		last := len(cols) - 1
		over := sum - width
		switch {
		case widths[last] > 0 && widths[last]-over >= 12: // a text can be cut
			widths[last] -= over
			return widths
		case out < 0:
			widths[0] = max(widths[0]-over, 1)
			return widths
		}
		sum -= widths[out] + gap
		widths[out] = 0
	}
	return widths
}

// row writes the cells of a row, cut and filled to their widths. Each cell of a
// terminal is put in its place: a terminal that takes a character for wider than we do
// does not move what follows.
func (m *model) row(cols []column, widths []int, cells []string, styles []string, base string) string {
	var b strings.Builder
	at := 0
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		if at > 0 {
			b.WriteString(strings.Repeat(" ", gap))
			if m.styled {
				_, _ = fmt.Fprintf(&b, "\x1b[%dG", at+gap+1)
			}
			at += gap
		}
		style := ""
		if styles != nil && base == "" {
			style = styles[i]
		}
		b.WriteString(m.paint(style, fit(cell, widths[i], cols[i].right)))
		at += widths[i]
	}
	if base != "" && at < m.width {
		b.WriteString(strings.Repeat(" ", m.width-at))
	}
	if !m.styled {
		return strings.TrimRight(b.String(), " ")
	}
	return m.paint(base, b.String())
}

// fit cuts s, or fills it, so that it is as wide as width.
func fit(s string, width int, right bool) string {
	s = cut(s, width)
	space := strings.Repeat(" ", max(width-displaywidth.String(s), 0))
	if right {
		return space + s
	}
	return s + space
}

// cut cuts s so that it is at most as wide as width.
func cut(s string, width int) string {
	if displaywidth.String(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return displaywidth.TruncateString(s, width, "…")
}
