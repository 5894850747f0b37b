// Package copytest copies the examples out of the repository, as their readers do.
package copytest

import (
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

// maxLines is how many lines of code an example has at most, without comments and
// tests: one idea, in one sitting.
const maxLines = 300

// A folder of an example builds in a module of the reader's, which has ambit and
// what else its imports name, and nothing else of the repository's.
func TestAFolderThatIsCopiedBuilds(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.Abs(filepath.Join(examples, ".."))
	require.NoError(t, err)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(examples, name))
		require.NoError(t, err)
		mod := strings.Replace(string(text), "module github.com/ambit-go/ambit/examples", "module copied", 1)
		mod = strings.ReplaceAll(mod, "=> ../", "=> "+root+"/")
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(mod), 0o600))
	}
	for _, example := range all(t) {
		for _, file := range sources(t, example) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, example), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, example, filepath.Base(file)), text, 0o600))
		}
	}
	build := exec.Command("go", "list", "-export", "-f", "{{.Name}} {{.ImportPath}}", "./...") // compiles, and does not link
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, example := range all(t) {
		assert.Contains(t, string(out), "main copied/"+example+"\n")
	}
}

func TestAnExampleIsReadInOneSitting(t *testing.T) {
	for _, example := range all(t) {
		lines := 0
		for _, file := range sources(t, example) {
			lines += linesOfCode(t, file)
		}
		assert.LessOrEqual(t, lines, maxLines, example)
		t.Logf("%s: %d lines", example, lines)
	}
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

// sources returns the files of an example that are no tests.
func sources(t *testing.T, example string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examples, example, "*.go"))
	require.NoError(t, err)
	var sources []string
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			sources = append(sources, file)
		}
	}
	require.NotEmpty(t, sources, example)
	return sources
}

// linesOfCode counts the lines of a file that are neither empty nor a comment.
func linesOfCode(t *testing.T, file string) (lines int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	return lines
}
