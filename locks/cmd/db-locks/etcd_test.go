package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestTheCommandsOfTheOriginalOnEtcd says the same as on SQLite, in the same scripts.
func TestTheCommandsOfTheOriginalOnEtcd(t *testing.T) {
	server := servers.Etcd(t)
	scripts, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".txt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(script)
			require.NoError(t, err)
			got := newSession(t).script(string(text), func(line string) string {
				return "--store " + server.URL + "/" + name + " " + line
			})
			require.Equal(t, strings.Replace(string(text), "the sqlite store", "the etcd store", 1), got)
		})
	}
}

func TestDoctorOnEtcdSaysWhatARestoreNeeds(t *testing.T) {
	s := newSession(t)
	s.env["ETCD_URL"] = servers.Etcd(t).Address
	out, _, err := s.run("etcd doctor")
	require.NoError(t, err)
	require.Contains(t, out, "--bump-revision")
	require.Contains(t, out, "ok   fencing tokens increase: 20 of them")
	require.NotContains(t, out, "FAIL")
	out, _, err = s.run("etcd list")
	require.NoError(t, err)
	require.Contains(t, out, "no locks of tenant", "it has forgotten its lock")
}
