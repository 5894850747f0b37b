package board

import "github.com/charmbracelet/x/ansi"

const (
	script = "script" // the phase whose lines are kept
	tailed = 10       // how many of them
	widest = 500      // columns that are kept of each
)

// A tail is the last lines of a script, of as many as there were.
type tail struct {
	last  [tailed]string // a ring: line n is at n % tailed
	lines int
}

func (t *tail) add(line string) {
	if len(line) > widest { // in bytes, of which a column has at least one
		line = ansi.Truncate(line, widest, "…")
	}
	t.last[t.lines%tailed] = line
	t.lines++
}

// Tail returns the last lines that the script of a job has said in its last attempt,
// at most ten, also those that are hidden, and how many there were. The lines after the script are
// not among them.
func (b *Board) Tail(i int) (last []string, of int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.tails[i]
	for n := max(t.lines-tailed, 0); n < t.lines; n++ {
		last = append(last, t.last[n%tailed])
	}
	return last, t.lines
}
