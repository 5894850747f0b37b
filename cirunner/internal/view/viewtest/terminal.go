// Package viewtest has a terminal for tests: as much of one as package view and a
// shell make use of.
package viewtest

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A Terminal shows what is written to it. Goroutines may share it.
type Terminal struct {
	// Reflow says that lines are wrapped anew when the width changes, as most
	// terminals do; without it they are cut, as xterm does.
	Reflow bool

	mu            sync.Mutex
	width, height int
	rows          []row // at most height
	x, y          int   // the cursor; x is width behind the last column
	rest          string
	gone          int // rows that were scrolled away
}

// A row is a line of the screen. A wide character is followed by a 0.
type row struct {
	cells []rune
	soft  bool // the next row goes on with the same line
}

// New returns an empty terminal.
func New(width, height int) *Terminal {
	return &Terminal{width: width, height: height, rows: make([]row, 1)}
}

// Lines returns what is on the screen, without blanks at the ends of lines, and
// without empty lines at its end.
func (t *Terminal) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, r := range t.rows {
		lines = append(lines, strings.TrimRight(strings.ReplaceAll(string(r.cells), "\x00", ""), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Gone returns how many rows were scrolled away.
func (t *Terminal) Gone() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone
}

// Write takes output of a program, with the line ends of a terminal.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.rest + string(p)
	for s != "" {
		n := t.step(s)
		if n == 0 {
			break // the rest is to come
		}
		s = s[n:]
	}
	t.rest = s
	return len(p), nil
}

// step takes one character or escape sequence, and returns its length; 0 if it is
// not complete.
func (t *Terminal) step(s string) int {
	switch s[0] {
	case '\r':
		t.x = 0
		return 1
	case '\n':
		t.down(false)
		return 1
	case '\b', '\a':
		return 1
	case 0x1b:
		return t.escape(s)
	}
	if !utf8.FullRuneInString(s) {
		return 0
	}
	c, n := utf8.DecodeRuneInString(s)
	t.put(c)
	return n
}

func (t *Terminal) escape(s string) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] != '[' {
		return 2
	}
	end := strings.IndexFunc(s[2:], func(c rune) bool { return c >= '@' && c <= '~' })
	if end < 0 {
		return 0
	}
	n, _ := strconv.Atoi(s[2 : 2+end])
	switch s[2+end] {
	case 'A':
		t.y, t.x = max(t.y-max(n, 1), 0), min(t.x, t.width-1)
	case 'H':
		t.x, t.y = 0, 0
	case 'J':
		t.cut()
		t.rows = t.rows[:t.y+1]
	case 'K':
		t.cut()
	}
	return 2 + end + 1
}

// cut erases what stands at the cursor and behind it.
func (t *Terminal) cut() {
	r := &t.rows[t.y]
	r.cells, r.soft = r.cells[:min(t.x, len(r.cells))], false
}

func (t *Terminal) put(c rune) {
	w := max(ansi.StringWidth(string(c)), 1)
	if t.x+w > t.width {
		t.down(true)
		t.x = 0
	}
	r := &t.rows[t.y]
	for len(r.cells) < t.x+w {
		r.cells = append(r.cells, ' ')
	}
	r.cells[t.x] = c
	if w == 2 {
		r.cells[t.x+1] = 0
	}
	t.x += w
}

// down moves the cursor to the next row, and scrolls if there is none.
func (t *Terminal) down(soft bool) {
	t.rows[t.y].soft = soft
	if t.y++; t.y == len(t.rows) {
		t.rows = append(t.rows, row{})
	}
	t.scroll()
}

func (t *Terminal) scroll() {
	for len(t.rows) > t.height {
		t.rows = t.rows[1:]
		t.y = max(t.y-1, 0)
		t.gone++
	}
}

// Resize changes the size.
func (t *Terminal) Resize(width, height int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.width, t.height = width, height
	if !t.Reflow {
		for i := range t.rows {
			t.rows[i].cells = t.rows[i].cells[:min(len(t.rows[i].cells), width)]
		}
	} else {
		t.reflow()
	}
	t.x = min(t.x, width-1)
	t.scroll()
}

// reflow wraps all lines anew. The cursor stays in its line.
func (t *Terminal) reflow() {
	var rows []row
	y := 0
	var line []rune
	for i, r := range t.rows {
		line = append(line, r.cells...)
		if i == t.y {
			y = len(rows)
		}
		if r.soft && i < len(t.rows)-1 {
			continue
		}
		for len(line) > t.width {
			rows = append(rows, row{line[:t.width:t.width], true})
			line = line[t.width:]
		}
		rows = append(rows, row{cells: line})
		line = nil
	}
	t.rows, t.y = rows, y
}
