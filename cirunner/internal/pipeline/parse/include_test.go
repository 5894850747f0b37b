package parse

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline/words"
	"github.com/stretchr/testify/require"
)

// A fault in a file that is included is said with the name of that file.
func TestPlacesInIncludedFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.yml"), []byte("b:\n  script: x\n  stage: nowhere\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yml"), []byte("c: [\n"), 0o600))
	include := func(data string) error {
		_, err := Options{Dir: dir}.Parse("a.yml", []byte(data))
		return err
	}
	in := filepath.ToSlash(dir)
	require.EqualError(t, include("include: b.yml\na: {script: x, retry: 9}"),
		"a.yml:2:23: retry should be a number from 0 to 2, not the number 9\n"+in+`/b.yml:3:10: there is no stage "nowhere"`)
	require.ErrorContains(t, include("include: c.yml\na: {script: x}"), in+"/c.yml:2:1: not YAML")
	require.ErrorContains(t, include("include: ['b.yml', /nothing.yml]\na: {script: x}"), `a.yml:1:20: include:local: there is no file "nothing.yml" in `)
	require.ErrorContains(t, include("include: {local: ../../etc/passwd}\na: {script: x}"), "should end in .yml or .yaml")
	require.ErrorContains(t, include("include: {local: b.yml, inputs: {a: b}}"), "the file takes no inputs: it has no header with spec:inputs")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "self.yml"), []byte("include: self.yml\n"), 0o600))
	require.ErrorContains(t, include("include: self.yml\na: {script: x}"), "files include files more than 10 deep")
}

// A file that the rules of an include leave out need not be there.
func TestAnIncludeThatIsLeftOut(t *testing.T) {
	p, err := Options{Dir: t.TempDir()}.Parse("a.yml", []byte(`
include:
  - {local: nothing.yml, rules: [{if: $NOWHERE}]}
  - {project: a/b, file: c.yml, rules: [{if: $CI_COMMIT_BRANCH, when: never}, {when: always}]}
  - {rules: [{exists: [x.yml]}], remote: "https://example.com/x.yml"}
a: {script: x}`))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names(p.Jobs))
	require.Empty(t, p.Warnings)
}

// The patterns of GitLab's page about include: ** is anything, also no directory.
func TestIncludesWithWildcards(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ci/a.yml", "ci/sub/b.yml", "ci/sub/deep/c.yml", "ci/d.yaml", "other/ci/e.yml", ".git/f.yml"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(filepath.Base(name)+": {script: x}\n"), 0o600))
	}
	for pattern, want := range map[string][]string{
		"ci/*.yml":      {"a.yml"},
		"/ci/**.yml":    {"a.yml", "b.yml", "c.yml"},
		"ci/**/*.yml":   {"b.yml", "c.yml"},
		"**/ci/*.yml":   {"e.yml"},
		"ci/s*/*.yml":   {"b.yml"},
		"**.yml":        {"a.yml", "b.yml", "c.yml", "e.yml"},
		"ci/[a].yml*":   nil,
		"nowhere/*.yml": nil,
	} {
		p, err := Options{Dir: dir}.Parse("a.yml", []byte("include: "+words.Quote(pattern)+"\nown: {script: x}"))
		if pattern == "ci/[a].yml*" {
			require.ErrorContains(t, err, "should end in .yml or .yaml")
			continue
		}
		require.NoError(t, err, pattern)
		require.Equal(t, append(want, "own"), names(p.Jobs), pattern)
		require.Equal(t, len(want) == 0, len(p.Warnings) == 1, pattern)
	}
}
