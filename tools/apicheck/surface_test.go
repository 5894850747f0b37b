package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// Each case in testdata/surface is Go source and the text expected of it.
func TestSurfaceOfEveryKindOfDeclaration(t *testing.T) {
	cases, err := filepath.Glob("testdata/surface/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			require.Len(t, archive.Files, 2)
			source, want := archive.Files[0], archive.Files[1]
			require.Equal(t, string(want.Data), string(surface(check(t, source.Data))))
		})
	}
}

// A part that users cannot see may change freely.
func TestSurfaceIgnoresOrderCommentsAndBodies(t *testing.T) {
	a := check(t, []byte(`package p
		// F does one thing.
		func F() int { return 1 }
		type T struct{ a int }
		func (T) B() {}
		func (T) A() {}
		func g() {}`))
	b := check(t, []byte(`package p
		type T struct{ b, c string }
		func (T) A() {}
		// B does nothing.
		func (T) B() {}
		// F does another.
		func F() int { return 2 }`))
	require.Equal(t, string(surface(a)), string(surface(b)))
}

// check type-checks one file as package example.com/p.
func check(t *testing.T, source []byte) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
	require.NoError(t, err)
	config := types.Config{Importer: importer.Default()}
	pkg, err := config.Check("example.com/p", fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	return pkg
}
