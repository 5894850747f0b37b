package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAdoptingShowsTheTestedCode compares the Go code of docs/adopting.md with
// the files under adopting. Code that is shown stands in one of them word for word,
// every exported function of theirs is shown, and the tests there use each.
func TestAdoptingShowsTheTestedCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "adopting.md"))
	require.NoError(t, err)
	files, tests := sources(t, "adopting", filepath.Join("adopting", "byhand"))

	shown := map[string]bool{}
	for _, m := range goBlock.FindAllSubmatch(page, -1) {
		code := string(m[1])
		require.True(t, stands(files, code) || stands(tests, code), "docs/adopting.md shows code that is in no file:\n%s", code)
		for _, f := range functions(parse(t, "package p\n"+code)) {
			shown[f] = true
		}
	}
	require.NotEmpty(t, shown)
	used := identifiers(t, tests)
	for _, text := range files {
		for _, f := range functions(parse(t, text)) {
			if ast.IsExported(f) {
				require.True(t, shown[f], "docs/adopting.md does not show %s", f)
				require.True(t, used[f], "no test uses %s", f)
			}
		}
	}
}

// sources returns the text of the Go files in dirs.
func sources(t *testing.T, dirs ...string) (files, tests []string) {
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if strings.HasSuffix(name, "_test.go") {
				tests = append(tests, string(text))
			} else {
				files = append(files, string(text))
			}
		}
	}
	return files, tests
}

// stands reports whether code makes up whole declarations of a file.
func stands(files []string, code string) bool {
	for _, text := range files {
		if strings.Contains(text+"\n", "\n\n"+code+"\n") {
			return true
		}
	}
	return false
}

func parse(t *testing.T, text string) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	require.NoError(t, err, text)
	return file
}

// functions returns the names of the functions and methods that a file declares.
func functions(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// identifiers returns every name in files.
func identifiers(t *testing.T, files []string) map[string]bool {
	names := map[string]bool{}
	for _, text := range files {
		ast.Inspect(parse(t, text), func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	return names
}
