package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong in a file that is included is said with the name of that file.
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
	require.ErrorContains(t, include("include: {local: b.yml, inputs: {a: b}}"), "include:inputs is not supported")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "self.yml"), []byte("include: self.yml\n"), 0o600))
	require.ErrorContains(t, include("include: self.yml\na: {script: x}"), "files include files more than 10 deep")
}
