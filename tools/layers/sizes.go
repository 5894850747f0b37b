package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sizes beyond which a thing is listed.
const (
	longFunction = 45  // lines, from func to the closing brace, comments included
	longFile     = 320 // lines, all that the file has
	longTest     = 500
	longLine     = 120 // columns of a line that has code; a tab is four
	tabWidth     = 4
)

// A long thing is listed because of its size.
type long struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// largestFirst sorts in place.
func largestFirst(list []long) []long {
	slices.SortFunc(list, func(a, b long) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name))
	})
	return list
}

// codeLines gives for each line of text that has code, comments and blanks
// apart, its width in columns. Each line of a string has code.
func codeLines(text []byte) map[int]int {
	tokens := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(tokens, text, nil, 0)
	width := map[int]int{}
	lines := bytes.Split(text, []byte("\n"))
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return width
		}
		if tok == token.SEMICOLON && literal != ";" {
			continue // written by no one
		}
		first := tokens.Line(pos)
		for line := first; line <= first+strings.Count(literal, "\n"); line++ {
			width[line] = columns(lines[line-1])
		}
	}
}

func columns(line []byte) int {
	return utf8.RuneCount(line) + (tabWidth-1)*bytes.Count(line, []byte("\t"))
}

// longFunctions lists the functions that are too long, and gives the median
// length of all.
func longFunctions(h *house) (list []long, median float64) {
	var lengths []int
	for _, f := range h.structure() {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			length := h.fset.Position(fn.End()).Line - h.fset.Position(fn.Pos()).Line + 1
			lengths = append(lengths, length)
			if length > longFunction {
				list = append(list, long{f.name + " " + functionName(fn), length})
			}
		}
	}
	return largestFirst(list), middle(lengths)
}

func middle(lengths []int) float64 {
	n := len(lengths)
	if n == 0 {
		return 0
	}
	slices.Sort(lengths)
	return float64(lengths[(n-1)/2]+lengths[n/2]) / 2
}

// functionName is the name of fn, for a method with that of its type.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return receiver(fn) + "." + fn.Name.Name
}

// receiver is the name of the type that has the method.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// A folder has the text of a package: sources of all builds, and tests.
type folder struct {
	code, sources, tests     int // lines that have code without those of tests; files
	longFiles, longTests     []long
	longLines, longTestLines []long
}

// look reads the Go files of the folder name of the house.
func look(h *house, name string) (folder, error) {
	var d folder
	paths, err := filepath.Glob(filepath.Join(h.dir, filepath.FromSlash(name), "*.go"))
	if err != nil {
		return d, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return d, err
		}
		d.add(filepath.ToSlash(filepath.Join(name, filepath.Base(path))), text)
	}
	return d, nil
}

func (d *folder) add(name string, text []byte) {
	files, lines, limit := &d.longFiles, &d.longLines, longFile
	widths := codeLines(text)
	if strings.HasSuffix(name, "_test.go") {
		files, lines, limit = &d.longTests, &d.longTestLines, longTest
		d.tests++
	} else {
		d.sources++
		d.code += len(widths)
	}
	if n := bytes.Count(text, []byte("\n")); n > limit {
		*files = append(*files, long{name, n})
	}
	for line, width := range widths {
		if width > longLine {
			*lines = append(*lines, long{fmt.Sprintf("%s:%d", name, line), width})
		}
	}
}
