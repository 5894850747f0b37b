package parse

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNestedKeywordsAreDocumented holds that DIALECT.md names every keyword below another, also those that are passed over: it
// looks into the source for the tables by which they are read. A keyword is named in backticks, alone or behind others (`cache:key:files`),
// or in an example.
func TestNestedKeywordsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../DIALECT.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, code := range regexp.MustCompile("(?s)```.*?```|`[^`\n]+`").FindAllString(string(data), -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(code, -1) {
			known[word] = true
		}
	}
	found := 0
	for _, dir := range []string{"../draft", "../inputs", "."} {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			for _, key := range nestedKeywords(parsed) {
				found++
				assert.True(t, known[key], "%s reads %s", file, key)
			}
		}
	}
	require.Greater(t, found, 80)
}

// nestedKeywords returns the keys of the tables of a file: values of tree.Keys, what is added to one, the reasons why keywords
// are passed over, and arguments of onlyKeys.
func nestedKeywords(file *ast.File) (all []string) {
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if key, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, key)
			}
		}
	}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if isTable(n.Type) {
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						add(pair.Key)
					}
				}
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if index, ok := left.(*ast.IndexExpr); ok {
					if table, ok := index.X.(*ast.Ident); ok && (table.Name == "readers" || table.Name == "keys" || table.Name == "ignored") {
						add(index.Index)
					}
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "onlyKeys" {
				for _, arg := range n.Args[2:] {
					add(arg)
				}
			}
		}
		return true
	}
	ast.Inspect(file, inspect)
	return all
}

// isTable reports whether a type is tree.Keys, or map[string]string.
func isTable(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "Keys"
	case *ast.MapType:
		key, ok := e.Key.(*ast.Ident)
		value, ok2 := e.Value.(*ast.Ident)
		return ok && ok2 && key.Name == "string" && value.Name == "string"
	}
	return false
}
