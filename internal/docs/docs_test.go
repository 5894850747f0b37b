// Package docs checks that the programs shown in the documentation compile.
package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var program = regexp.MustCompile("(?ms)^```go\n(package .*?)^```$")

// TestProgramsInTheDocumentationCompile vets every Go program in README.md and
// docs/, laid over the module so that it sees the packages as they are.
func TestProgramsInTheDocumentationCompile(t *testing.T) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	require.NoError(t, err)
	pages = append(pages, filepath.Join(top, "README.md"))

	programs := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, m := range program.FindAllSubmatch(text, -1) {
			programs++
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(page), i), func(t *testing.T) { vet(t, top, m[1]) })
		}
	}
	require.Positive(t, programs, "no program found: has the way they are marked changed?")
}

// TestABrokenProgramIsFound shows that the check can fail.
func TestABrokenProgramIsFound(t *testing.T) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	out, err := vetProgram(t, top, []byte("package main\n\nfunc main() { undefined() }\n"))
	require.Error(t, err)
	require.Contains(t, out, "undefined")
}

func vet(t *testing.T, top string, source []byte) {
	out, err := vetProgram(t, top, source)
	require.NoError(t, err, out)
}

func vetProgram(t *testing.T, top string, source []byte) (string, error) {
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, source, 0o600))
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(top, "internal", "docs", "program", "main.go"): file},
	})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))

	// It compiles, and does not link: that takes longer, and says no more.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-overlay", list, "./internal/docs/program")
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	return string(out), err
}
