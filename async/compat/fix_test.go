package compat_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var goVersion = regexp.MustCompile(`(?m)^go .*$`)

// TestGoFixMovesASampleToTheNewAPI copies a program into a module of its own,
// has go fix inline what is marked for it, and sees that the old names are gone
// and that the program does what it did.
func TestGoFixMovesASampleToTheNewAPI(t *testing.T) {
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	require.NoError(t, err)
	sample, err := os.ReadFile(filepath.Join("testdata", "sample.go"))
	require.NoError(t, err)

	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(main, sample, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil,
		"module sample\n\n%s\n\nrequire github.com/ambit-go/ambit v0.0.0\n\nreplace github.com/ambit-go/ambit => %q\n",
		goVersion.Find(mod), top), 0o600))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, out)
		return string(out)
	}

	before := run("run", ".")
	require.Regexp(t, `compat\.Execute\(`, string(sample))
	fixed := sample
	for range 3 { // what a fix leaves may be the next one's work
		run("fix", "-inline", "./...")
		fixed, err = os.ReadFile(main)
		require.NoError(t, err)
	}
	require.NotContains(t, string(fixed), "compat")
	for _, name := range []string{"Execute", "Race", "Poll", "OnAbort"} {
		require.Contains(t, string(fixed), "async."+name)
	}
	run("vet", ".")
	require.Equal(t, before, run("run", "."))
}
