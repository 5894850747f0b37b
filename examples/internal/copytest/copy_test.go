// Package copytest copies the examples out of the repository, as their readers do.
package copytest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examples are the folders that a reader copies, from here.
const examples = "../.."

// A folder of an example stands for itself in a module of the reader's, which has ambit and what else its imports
// name: go vet, which compiles the tests as well, has nothing to say, and the tests pass. All are looked at by go
// vet, one is tested: each has been tested already, where it stands.
func TestAFolderThatIsCopiedIsVettedAndTested(t *testing.T) {
	dir := t.TempDir()
	newModule(t, dir)
	for _, example := range all(t) {
		require.NoError(t, os.CopyFS(filepath.Join(dir, example), os.DirFS(filepath.Join(examples, example))))
	}
	assert.NotContains(t, run(t, dir, "go", "list", "-deps", "-test", "./..."), "ambit/examples/")
	run(t, dir, "go", "vet", "./...")
	assert.Contains(t, run(t, dir, "go", "test", "-vet=off", "-count=1", "-v", "./actor"), "ok  \tcopied/actor\t")
}

// newModule makes a module that requires ambit, from here, and the versions of the rest that the examples have.
func newModule(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join(examples, ".."))
	require.NoError(t, err)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(examples, name))
		require.NoError(t, err)
		mod := strings.Replace(string(text), "module github.com/ambit-go/ambit/examples", "module copied", 1)
		mod = strings.ReplaceAll(mod, "=> ../", "=> "+root+"/")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(mod), 0o600))
	}
}

// run runs a command of go, which must succeed, and returns its output. It downloads nothing.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v\n%s", args, out)
	return string(out)
}

// The most that a reader has to hold in the head at a time. There is no limit for an example as a whole: there was
// one, of 300 lines, and it was kept by long lines and tables that nobody could read.
const (
	maxFile     = 300 // lines of a file, of tests 500
	maxTestFile = 500
	maxFunction = 45  // lines of a function
	maxColumns  = 150 // of a line of code
)

func TestAnExampleIsReadInSmallPieces(t *testing.T) {
	for _, example := range all(t) {
		code, longest := 0, 0
		for _, file := range goFiles(t, example) {
			size := measure(t, file)
			if strings.HasSuffix(file, "_test.go") {
				assert.LessOrEqual(t, size.lines, maxTestFile, file)
				continue
			}
			assert.LessOrEqual(t, size.lines, maxFile, file)
			for name, lines := range size.functions {
				assert.LessOrEqual(t, lines, maxFunction, "%s: %s", file, name)
				longest = max(longest, lines)
			}
			for _, line := range size.wide {
				t.Errorf("%s: more than %d columns: %s", file, maxColumns, line)
			}
			code += size.code
		}
		t.Logf("%s: %d lines of code, the longest function has %d", example, code, longest)
	}
}

func TestATooLongFileIsMeasured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	text := "package a\n\n// f does nothing.\nfunc f() {\n\n}\n\nvar wide = `" + strings.Repeat("x", 150) + "`\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	size := measure(t, file)
	assert.Equal(t, 8, size.lines)
	assert.Equal(t, 4, size.code)
	assert.Equal(t, map[string]int{"f": 3}, size.functions)
	assert.Len(t, size.wide, 1)
}

// A size is what a reader has to read of a file.
type size struct {
	lines, code int            // all; those that are neither empty nor a comment
	functions   map[string]int // lines of each
	wide        []string       // lines that are too long
}

func measure(t *testing.T, file string) (s size) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		s.lines++
		if len(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")) > maxColumns {
			s.wide = append(s.wide, line)
		}
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			s.code++
		}
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, 0)
	require.NoError(t, err)
	s.functions = map[string]int{}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			s.functions[f.Name.Name] = fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1
		}
	}
	return s
}

// all returns the names of all examples.
func all(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(examples)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "internal" {
			names = append(names, entry.Name())
		}
	}
	require.NotEmpty(t, names)
	return names
}

// goFiles returns the files of an example.
func goFiles(t *testing.T, example string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examples, example, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, example)
	return files
}
