package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"apicheck": main})
}

// The scripts run the program against small modules, and plant changes.
func TestScripts(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			env.Setenv("GOFLAGS", os.Getenv("GOFLAGS"))
			env.Setenv("GOPROXY", "off")
			return nil
		},
	})
}

func TestFileNames(t *testing.T) {
	const module = "example.com/ambit"
	for pkg, want := range map[string]string{
		"example.com/ambit":                 "ambit.txt",
		"example.com/ambit/async":           "async.txt",
		"example.com/ambit/async/asynctest": "async.asynctest.txt",
	} {
		require.Equal(t, want, fileName(module, pkg))
	}
}

func TestInternalPackagesAreNotPublic(t *testing.T) {
	for pkg, want := range map[string]bool{
		"example.com/ambit/internal":          true,
		"example.com/ambit/internal/list":     true,
		"example.com/ambit/async/internal/ds": true,
		"example.com/ambit/internals":         false,
		"example.com/ambit/async":             false,
	} {
		require.Equal(t, want, internal(pkg), pkg)
	}
}
