package main

import (
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source gives the lines of a file without the indentation that they share.
func source(lines ...string) []byte {
	return []byte(strings.Join(lines, "\n") + "\n")
}

func TestALineOfCodeHasMoreThanBlanksAndComments(t *testing.T) {
	widths := codeLines(source(
		"// Package p.",         // 1
		"package p",             // 2
		"",                      // 3
		"/* a",                  // 4
		"b */ var x = 1",        // 5
		"var y = `a",            // 6
		"// not a comment",      // 7
		"`",                     // 8
		"\tfunc f() { // after", // 9
		"// alone",              // 10
		"}",                     // 11
	))
	require.Equal(t, []int{2, 5, 6, 7, 8, 9, 11}, slices.Sorted(maps.Keys(widths)))
	require.Equal(t, 4+len("func f() { // after"), widths[9], "a tab is four columns")
}

func TestTooLongIsWhatIsBeyondTheLimit(t *testing.T) {
	fits := "var x = `" + strings.Repeat("é", longLine-len("var x = ``")) + "`"
	require.Len(t, []rune(fits), longLine)
	var d folder
	d.add("fits.go", source("package p", fits))
	require.Empty(t, d.longLines)
	d.add("wide.go", source("package p", fits+";", "// "+fits+fits))
	require.Equal(t, []long{{"wide.go:2", longLine + 1}}, d.longLines)
	d.add("wide_test.go", source("package p", fits+";"))
	require.Equal(t, []long{{"wide_test.go:2", longLine + 1}}, d.longTestLines)

	tall := append([]string{"package p"}, make([]string, longFile-1)...)
	d.add("tall.go", source(tall...))
	require.Empty(t, d.longFiles)
	d.add("taller.go", source(append(tall, "")...))
	require.Equal(t, []long{{"taller.go", longFile + 1}}, d.longFiles)
	d.add("taller_test.go", source(append(tall, "")...))
	require.Empty(t, d.longTests)
	require.Equal(t, 4, d.sources)
	require.Equal(t, 2, d.tests)
}

func TestMedian(t *testing.T) {
	require.Equal(t, 3.0, middle([]int{9, 1, 3}))
	require.Equal(t, 2.5, middle([]int{9, 1, 3, 2}))
	require.Zero(t, middle(nil))
}

func TestALongFunctionIsListed(t *testing.T) {
	h := &house{}
	require.Empty(t, h.addText(t, "fits.go", function("fits", longFunction)))
	require.Equal(t, []long{{"long.go A.long", longFunction + 1}},
		h.addText(t, "long.go", "type A[T any] struct{}\n"+function("(a *A[T]) long", longFunction+1)))
}

// function is one of the given number of lines, all but two of them comments.
func function(name string, lines int) string {
	return "func " + name + "() {\n" + strings.Repeat("\t// why\n", lines-2) + "}\n"
}

// addText adds a file to h, and returns which functions of h are too long.
func (h *house) addText(t *testing.T, name, text string) []long {
	if h.fset == nil {
		h.fset = token.NewFileSet()
	}
	syntax, err := parser.ParseFile(h.fset, name, "package p\n"+text, 0)
	require.NoError(t, err)
	h.files = append(h.files, &file{name: name, syntax: syntax})
	list, _ := longFunctions(h)
	return list
}
