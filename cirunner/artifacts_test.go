//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The length that a variable of the machine grows to is seen when the job is run.
func TestAVariableGrowsTooLarge(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
variables: {B: "$A$A$A$A$A$A$A$A", C: "$B$B$B$B$B$B$B$B"}
job: {script: [echo never]}
`)
	big := make([]byte, 10_000)
	for i := range big {
		big[i] = 'x'
	}
	p.env = append(p.env, "A="+string(big))
	run := p.start()
	assert.Equal(t, 1, run.Wait())
	assert.Contains(t, row(t, run.Stdout(), "job"), "runner_system_failure: the variable C has more than 131071 bytes")
	p.nothingIsLeft()
}

func TestArtifactsWithVariables(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
job:
  script: [mkdir out, touch out/a out/b.tmp]
  artifacts: {paths: ["$UNSET", "$CI_PROJECT_DIR/out"], exclude: ["$CI_PROJECT_DIR/out/*.tmp", "$UNSET"]}
`)
	run := p.start()
	assert.Equal(t, 0, run.Wait(), run.Stdout())
	assert.Contains(t, run.Stdout(), "[job] cirunner: artifacts: $UNSET is empty\n")
	assert.Contains(t, run.Stdout(), "[job] cirunner: 1 artifact kept\n")
	assert.FileExists(t, filepath.Join(p.dir, ".cirunner/1/artifacts/001-job/out/a"))
	p.nothingIsLeft()
}

// Artifacts outside of the job's directory are passed over, also if that is known only
// when the job has run: GitLab's runner does so.
func TestArtifactsOutsideOfTheJob(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
job:
  script: [echo hello]
  artifacts: {paths: ["$AWAY/hostname"]}
  variables: {AWAY: /etc}
`)
	run := p.start()
	assert.Equal(t, 0, run.Wait(), run.Stdout())
	assert.Contains(t, run.Stdout(), "[job] cirunner: artifacts: nothing in the job's directory matches /etc/hostname\n[job] cirunner: 0 artifacts kept\n")
	p.nothingIsLeft()
}

// -junit writes to what is there: a pipe stays a pipe, a link a link.
func TestJUnitToALink(t *testing.T) {
	t.Parallel()
	p := newProject(t, "job: {script: [echo hello]}\n")
	p.write("real.xml", "old")
	link := filepath.Join(p.dir, "link.xml")
	require.NoError(t, os.Symlink("real.xml", link))
	run := p.start("-junit", "link.xml")
	assert.Equal(t, 0, run.Wait(), run.Stderr())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	assert.Contains(t, p.read("real.xml"), "<testsuites")
	p.nothingIsLeft()
}
