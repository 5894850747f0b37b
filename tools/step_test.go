package tools

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// The script runs step.sh with a make that passes, and with one that fails.
func TestStepScript(t *testing.T) {
	script, err := filepath.Abs("step.sh")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/step",
		Setup: func(env *testscript.Env) error {
			env.Setenv("STEP", script)
			return nil
		},
	})
}
