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

// TestPagesShowTheTestedCode compares the Go code of pages with the files under a folder.
// Code that is shown stands in one of them word for word, every exported function of theirs
// is shown, and the tests there use each. Whole programs are those of
// TestProgramsInTheDocumentationCompile.
func TestPagesShowTheTestedCode(t *testing.T) {
	for name, folder := range map[string]string{"docs/adopting.md": "adopting", "README.md": "readme"} {
		page, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		files, tests := sources(t, folder, filepath.Join(folder, "byhand"))

		shown := map[string]bool{}
		for _, m := range goBlock.FindAllSubmatch(page, -1) {
			code := string(m[1])
			if strings.HasPrefix(code, "package ") {
				continue
			}
			require.True(t, stands(files, code) || stands(tests, code), "%s shows code that is in no file:\n%s", name, code)
			for _, f := range functions(parse(t, "package p\n"+code)) {
				shown[f] = true
			}
		}
		require.NotEmpty(t, shown)
		used := identifiers(t, tests)
		for _, text := range files {
			for _, f := range functions(parse(t, text)) {
				if ast.IsExported(f) {
					require.True(t, shown[f], "%s does not show %s", name, f)
					require.True(t, used[f], "no test uses %s", f)
				}
			}
		}
	}
}

// TestFragmentsStandInTestedCode compares the Go code of pages that is part of a function with the tests that run it.
func TestFragmentsStandInTestedCode(t *testing.T) {
	for name, tests := range map[string][]string{
		"docs/observability.md": {"observability/observability_test.go", "../../otel/guide_test.go"},
	} {
		page, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		var code []string
		for _, file := range tests {
			text, err := os.ReadFile(filepath.FromSlash(file))
			require.NoError(t, err)
			code = append(code, string(text))
		}
		blocks := goBlock.FindAllSubmatch(page, -1)
		require.NotEmpty(t, blocks, name)
		for _, m := range blocks {
			require.True(t, runs(code, string(m[1])), "%s shows code that no test runs:\n%s", name, m[1])
		}
	}
}

// runs reports whether lines follow each other in a function of one of files.
func runs(files []string, lines string) bool {
	for _, text := range files {
		for _, indent := range []string{"\t", "\t\t"} {
			if strings.Contains(text, "\n"+indent+strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n"+indent)+"\n") {
				return true
			}
		}
	}
	return false
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
