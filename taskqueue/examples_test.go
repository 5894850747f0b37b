package taskqueue_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every exported function and method has an example whose output is checked, but for
// the methods of errors, which the other examples print.
func TestEveryExportedFunctionHasAnExample(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	fset := token.NewFileSet()
	var code, tests []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		f, err := parser.ParseFile(fset, e.Name(), nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(e.Name(), "_test.go") {
			tests = append(tests, f)
		} else {
			code = append(code, f)
		}
	}
	has := map[string]bool{}
	for _, x := range doc.Examples(tests...) {
		assert.NotEmpty(t, x.Output, "Example%s", x.Name)
		has[x.Name] = true
	}
	p, err := doc.NewFromFiles(fset, code, "github.com/ambit-go/ambit/taskqueue")
	require.NoError(t, err)
	want := func(name, text string) {
		assert.NotEmpty(t, text, "%s has no comment", name)
		assert.True(t, has[name], "there is no Example%s", name)
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			want(f.Name, f.Doc)
		}
	}
	functions(p.Funcs)
	for _, typ := range p.Types {
		assert.NotEmpty(t, typ.Doc, "%s has no comment", typ.Name)
		functions(typ.Funcs)
		for _, m := range typ.Methods {
			if !strings.HasSuffix(typ.Name, "Error") {
				want(typ.Name+"_"+m.Name, m.Doc)
			}
		}
	}
	assert.Greater(t, len(has), 50)
}
