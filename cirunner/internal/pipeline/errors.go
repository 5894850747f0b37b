package pipeline

import (
	"fmt"
	"strings"
)

// A Problem is one thing that is wrong with a file.
type Problem struct {
	Pos
	Text string

	// Source is the line of the file, with tabs as spaces and clipped where it
	// is long; Caret is how many characters of it stand before the place.
	Source string
	Caret  int
}

// String returns the place and the text.
func (p Problem) String() string { return p.Pos.String() + ": " + p.Text }

// Errors is everything that is wrong with a file, in the order of the file.
type Errors struct {
	Problems []Problem // at most 50, at least one
	More     int       // how many there are besides
}

// Error returns a line file:line:column: message for each problem. A message
// that shows an example goes on in indented lines.
func (e *Errors) Error() string { return e.format(false) }

// Detail returns the same, and below each problem the line of the file with a
// mark under the place.
func (e *Errors) Detail() string { return e.format(true) }

func (e *Errors) format(source bool) string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.String())
		if source && p.Source != "" {
			lines = append(lines, "\t"+p.Source, "\t"+strings.Repeat(" ", p.Caret)+"^")
		}
	}
	if e.More > 0 {
		last := e.Problems[len(e.Problems)-1]
		lines = append(lines, fmt.Sprintf("%s: %d more errors after these", last.Pos, e.More))
	}
	return strings.Join(lines, "\n")
}

// A Warning is about something that the file says and cirunner passes over: a
// keyword, wherever it stands.
type Warning struct {
	Pos            // the first place
	Keyword string // what is passed over
	Count   int    // in how many places it stands
	Text    string // what that means, at the first place
}

// String returns a line: place, keyword, how often, and what it means.
func (w Warning) String() string {
	if w.Count == 1 {
		return fmt.Sprintf("%s: warning: %s: %s", w.Pos, w.Keyword, w.Text)
	}
	return fmt.Sprintf("%s: warning: %s (%d times, here first): %s", w.Pos, w.Keyword, w.Count, w.Text)
}
