//go:build unix

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A repository of a server on this machine.
func repository(t *testing.T, base, project string) func(args ...string) {
	dir := filepath.Join(base, project+".git")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q", "-b", "main")
	return git
}

func TestAProjectOfAServer(t *testing.T) {
	base := t.TempDir()
	git := repository(t, base, "group/ci")
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(base, "group/ci.git/a.yml"), []byte(text), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", text)
	}
	write("one")
	for _, tag := range []string{"1.2.3", "1.10.0", "1.9.9", "v2.0.0", "3.0.0-rc1", "other"} {
		git("tag", tag)
	}
	write("two")
	s := &Server{Base: "file://" + base + "/"}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for ref, want := range map[string]string{"": "two", "main": "two", "1.2.3": "one"} {
		dir, err := s.Checkout(t.Context(), "/group/ci", ref)
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(dir, "a.yml"))
		require.NoError(t, err)
		require.Equal(t, want, string(data), ref)
		again, err := s.Checkout(t.Context(), "group/ci", ref)
		require.NoError(t, err)
		require.Equal(t, dir, again)
	}
	for version, want := range map[string]string{"~latest": "v2.0.0", "1": "1.10.0", "1.2": "1.2.3", "1.2.3": "1.2.3", "main": "main", "2": "v2.0.0"} {
		got, err := s.Version(t.Context(), "group/ci", version)
		require.NoError(t, err)
		require.Equal(t, want, got, version)
	}
	_, err := s.Version(t.Context(), "group/ci", "7")
	require.ErrorContains(t, err, "no release of the version 7")
	_, err = s.Checkout(t.Context(), "group/ci", "none")
	require.ErrorContains(t, err, base+"/group/ci.git: ")
	_, err = s.Checkout(t.Context(), "group/none", "")
	require.Error(t, err)
	_, err = s.Checkout(t.Context(), "group/ci", "--upload-pack=touch x")
	require.ErrorContains(t, err, "is no branch, tag or commit")
	tmp := s.dir
	require.NoError(t, s.Close())
	require.NoDirExists(t, tmp)
}
