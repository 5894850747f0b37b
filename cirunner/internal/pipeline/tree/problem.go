package tree

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// Limits on what is reported.
const (
	MaxReported = 50   // problems of one file
	maxKept     = 5000 // problems before they are sorted
	MaxSource   = 100  // characters of a source line
	MaxText     = 1000 // characters of a message, whatever the YAML library says
)

// A Mark is a place in one of the files that are parsed: the first is the
// pipeline's, the others are included.
type Mark struct{ Line, Column, File int }

// Compare orders places by file, line and column.
func (a Mark) Compare(b Mark) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// A source is a file that is parsed.
type source struct {
	name string
	data []byte
}

// Problems collects what is wrong. A fault that several jobs inherit is told once.
type Problems struct {
	files    []source
	strict   bool // what is passed over is wrong
	list     []problem
	warnings map[string]*warned // by keyword
	seen     map[problem]bool
	lost     int // problems beyond maxKept
	hints    int // names that were looked for
	quiet    int // how many callers want no warnings
}

type problem struct {
	at   Mark
	text string
}

// Errorf notes a problem at a place. Its text is cut at MaxText characters.
func (p *Problems) Errorf(at Mark, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if utf8.RuneCountInString(text) > MaxText {
		text = string([]rune(text)[:MaxText]) + "…"
	}
	found := problem{Mark{max(at.Line, 1), max(at.Column, 1), at.File}, text}
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

// Take adds what is wrong for a [Reader.Sibling], with the files that it has read. A file that is known keeps its
// place, so that a fault of a file which is read twice is told once.
func (p *Problems) Take(from *Problems) {
	place := make([]int, len(from.files))
	for i, f := range from.files {
		place[i] = slices.IndexFunc(p.files, func(known source) bool { return known.name == f.name && bytes.Equal(known.data, f.data) })
		if place[i] < 0 {
			place[i] = len(p.files)
			p.files = append(p.files, f)
		}
	}
	for _, found := range from.list {
		p.Errorf(Mark{found.at.Line, found.at.Column, place[found.at.File]}, "%s", found.text)
	}
	p.lost += from.lost
}

// Count returns how many problems there are.
func (p *Problems) Count() int { return len(p.list) }

// FirstFile returns the name of the file that was read first.
func (p *Problems) FirstFile() string { return p.files[0].name }

// Pos returns a place with the name of its file.
func (p *Problems) Pos(at Mark) pipeline.Pos {
	return pipeline.Pos{File: p.files[at.File].name, Line: at.Line, Column: at.Column}
}

// order returns what compares places for people: a file with a header is read twice, as it stands and with its
// inputs, and is one for them.
func (p *Problems) order() func(a, b Mark) int {
	first := make([]int, len(p.files))
	for i, f := range p.files {
		first[i] = slices.IndexFunc(p.files, func(known source) bool { return known.name == f.name })
	}
	return func(a, b Mark) int {
		a.File, b.File = first[a.File], first[b.File]
		return a.Compare(b)
	}
}

// Err returns an *Errors, or nil if all is well.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	compare := p.order()
	slices.SortFunc(p.list, func(a, b problem) int { return cmp.Or(compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	shown := p.list[:min(len(p.list), MaxReported)]
	e := &pipeline.Errors{More: len(p.list) - len(shown) + p.lost}
	lines := make(map[int][]string)
	for _, found := range shown {
		described := pipeline.Problem{Pos: p.Pos(found.at), Text: found.text}
		file := found.at.File
		if lines[file] == nil {
			data := p.files[file].data
			lines[file] = strings.Split(string(data[:min(len(data), MaxSize)]), "\n")
		}
		if found.at.Line <= len(lines[file]) {
			described.Source, described.Caret = excerpt(lines[file][found.at.Line-1], found.at.Column-1)
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
	from := max(0, min(column-MaxSource/2, len(runes)-MaxSource))
	part := runes[from:min(from+MaxSource, len(runes))]
	return strings.TrimRight(string(part), " "), column - from
}
