//go:build unix

package projectvars

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

func write(t *testing.T, text string, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "variables.yml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestAVariableIsForItsScopeAndProtectedRefs(t *testing.T) {
	f, err := Read(write(t, `
- {name: URL, value: exact, environment_scope: review/one}
- {name: URL, value: all}
- {name: URL, value: review, environment_scope: review/*}
- {name: TOKEN, value: secret, masked: true, protected: true}
- {key: KEY, value: "first\nsecond", variable_type: file, raw: true, hidden: true, description: ~}
`, 0o600))
	require.NoError(t, err)
	url := func(protected bool, environment string) string {
		return pipeline.References(f.For(protected, environment))["URL"]
	}
	require.Equal(t, "all", url(false, ""))
	require.Equal(t, "all", url(false, "production"))
	require.Equal(t, "review", url(false, "review/two"))
	require.Equal(t, "exact", url(false, "review/one"))
	require.Len(t, f.For(false, ""), 2)
	require.Equal(t, []pipeline.Variable{
		{Name: "URL", Value: "all", Fixed: true}, {Name: "TOKEN", Value: "secret", Masked: true, Fixed: true},
		{Name: "KEY", Value: "first\nsecond", Raw: true, Masked: true, File: true, Fixed: true},
	}, f.For(true, ""))
	require.Equal(t, []string{"secret", "first\nsecond", "first", "second"}, f.Secrets())
}

func TestAFileThatIsNotForOthers(t *testing.T) {
	for _, mode := range []os.FileMode{0o640, 0o604, 0o602} {
		path := write(t, "[]", mode)
		_, err := Read(path)
		require.ErrorContains(t, err, "chmod 600 "+path)
	}
	_, err := Read(write(t, "[]", 0o400))
	require.NoError(t, err)
}

// A message has no value in it.
func TestFilesOfVariablesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"A: hunter2000":                                "it should be a list of variables",
		"hunter2000":                                   "it should be a list of variables",
		"- hunter2000":                                 "it should be a list of variables",
		"- {name: A, value: [hunter2000]}":             "it should be a list of variables",
		"- {name: A, valeu: hunter2000}":               "valeu",
		"- {name: A}":                                  "variable 1: A has no value",
		"- {name: 1A, value: hunter2000}":              "cannot be the name of a variable",
		"- {name: A, value: x, masked: yes}":           "the value of A is too short to be masked",
		"- {name: A, value: hunter2000, type: secret}": `the type of A should be variable or file, not "secret"`,
		"- {name: A, value: hunter2000}\n- {name: A, value: hunter2000}":      "variable 2: A is there already",
		"- {name: A, value: hunter2000}\n---\n- {name: A, value: hunter2000}": "it should be a list of variables",
	} {
		_, err := Read(write(t, text, 0o600))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hunter2000", text)
	}
}
