package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on what is reported.
const (
	maxReported = 50   // problems of one file
	maxKept     = 5000 // problems before they are sorted
	maxQuoted   = 60   // characters of the file in one message
	maxSource   = 100  // characters of a source line
	maxText     = 1000 // characters of a message, whatever the YAML library says
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

// A mark is a place in one of the files that are parsed: the first is the
// pipeline's, the others are included.
type mark struct{ line, column, file int }

func (a mark) compare(b mark) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
}

// A source is a file that is parsed.
type source struct {
	name string
	data []byte
}

// problems collects what is wrong. A fault that several jobs inherit is told once.
type problems struct {
	files    []source
	strict   bool // what is passed over is wrong
	list     []problem
	warnings map[string]*warned // by keyword
	seen     map[problem]bool
	lost     int // problems beyond maxKept
	hints    int // names that were looked for
}

type problem struct {
	at   mark
	text string
}

func (p *problems) errorf(at mark, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText]) + "…"
	}
	found := problem{mark{max(at.line, 1), max(at.column, 1), at.file}, text}
	if p.seen[found] {
		return
	}
	if len(p.list) == maxKept {
		p.lost++
		return
	}
	if p.seen == nil {
		p.seen = make(map[problem]bool)
	}
	p.seen[found] = true
	p.list = append(p.list, found)
}

func (p *problems) pos(at mark) Pos {
	return Pos{File: p.files[at.file].name, Line: at.line, Column: at.column}
}

// err returns an *Errors, or nil if all is well.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortFunc(p.list, func(a, b problem) int { return cmp.Or(a.at.compare(b.at), cmp.Compare(a.text, b.text)) })
	shown := p.list[:min(len(p.list), maxReported)]
	e := &Errors{More: len(p.list) - len(shown) + p.lost}
	lines := make(map[int][]string)
	for _, found := range shown {
		described := Problem{Pos: p.pos(found.at), Text: found.text}
		file := found.at.file
		if lines[file] == nil {
			data := p.files[file].data
			lines[file] = strings.Split(string(data[:min(len(data), MaxSize)]), "\n")
		}
		if found.at.line <= len(lines[file]) {
			described.Source, described.Caret = excerpt(lines[file][found.at.line-1], found.at.column-1)
		}
		e.Problems = append(e.Problems, described)
	}
	return e
}

// excerpt returns the part of a line around its character at column, counted
// from 0, and where that character is in the part.
func excerpt(line string, column int) (string, int) {
	runes := []rune(strings.TrimRight(line, "\r"))
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	column = min(column, len(runes))
	from := max(0, min(column-maxSource/2, len(runes)-maxSource))
	part := runes[from:min(from+maxSource, len(runes))]
	return strings.TrimRight(string(part), " "), column - from
}

// quote returns a piece of the file for a message: in quotes, in one line, and
// not for ever.
func quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuoted {
		s = string([]rune(s)[:maxQuoted]) + "…"
	}
	return strconv.Quote(s)
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
