// Package tools holds what the checks of this repository are made of.
package tools

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// The scripts run fuzz.sh on small modules, and on what go test may say.
func TestFuzzScript(t *testing.T) {
	script, err := filepath.Abs("fuzz.sh")
	require.NoError(t, err)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/fuzz",
		Setup: func(env *testscript.Env) error {
			env.Setenv("FUZZ", script)
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			return nil
		},
	})
}
