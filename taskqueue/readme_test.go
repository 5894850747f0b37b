package taskqueue_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var programs = regexp.MustCompile("(?ms)^```go\n(package .*?)^```$")

// compile compiles a program as if it were a package of this module.
func compile(t *testing.T, source []byte) (string, error) {
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	top, err := filepath.Abs(".")
	require.NoError(t, err)
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(top, "internal", "program", "main.go"): file}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, source, 0o600))
	require.NoError(t, os.WriteFile(overlay, b, 0o600))
	// It compiles, and does not link: that takes longer, and says no more.
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-overlay", overlay, "./internal/program").CombinedOutput()
	return string(out), err
}

func TestTheProgramsOfTheREADMECompile(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	all := programs.FindAllSubmatch(text, -1)
	require.Len(t, all, 5, "has the way they are marked changed?")
	for i, m := range all {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			out, err := compile(t, m[1])
			assert.NoError(t, err, out)
		})
	}
}

func TestAProgramThatDoesNotCompileIsFound(t *testing.T) {
	out, err := compile(t, []byte("package main\n\nfunc main() { undefined() }\n"))
	require.Error(t, err)
	assert.Contains(t, out, "undefined")
}
