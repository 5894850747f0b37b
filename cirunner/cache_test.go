//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Key and policy of a cache may be variables, also those that another job has reported.
func TestACacheByVariables(t *testing.T) {
	p := newProject(t, `
stages: [first, second]
report:
  stage: first
  script: ['echo POLICY=pull > e', 'echo KEY=k1 >> e']
  artifacts: {reports: {dotenv: e}}
fill:
  stage: first
  cache: {key: k1, paths: [c], policy: push}
  script: ['echo filled > c']
use:
  stage: second
  needs: [report, fill]
  cache: {key: $KEY, paths: [c], policy: $POLICY}
  script: ['cat c', 'echo changed > c']
`)
	for range 2 {
		run := p.start("-cache", "caches")
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		assert.Contains(t, run.Stdout(), "[fill] cirunner: cache cache-k1: 1 file kept\n")
		assert.NotContains(t, run.Stdout(), "[fill] cirunner: cache cache-k1\n", "fill only pushes")
		assert.Contains(t, run.Stdout(), "[use] cirunner: cache cache-k1\n")
		assert.Contains(t, run.Stdout(), "[use] filled\n")
		assert.NotContains(t, run.Stdout(), "[use] cirunner: cache cache-k1: 1 file kept", "use only pulls")
	}
	assert.Equal(t, "filled\n", p.read("caches/cache-k1/c"))
}

// A policy that turns out to be none is told once, and the job runs without its cache.
func TestACacheWithAPolicyThatIsNone(t *testing.T) {
	p := newProject(t, `
job:
  variables: {POLICY: sometimes}
  cache: {key: k, paths: [c], policy: $POLICY}
  script: ['echo x > c']
`)
	run := p.start("-cache", "caches")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Equal(t, 1, strings.Count(run.Stdout(), "cache:policy: $POLICY is none of pull, push and pull-push: the cache is neither taken nor kept"), run.Stdout())
	assert.NotContains(t, run.Stdout(), "file kept")
}

// A masked value in the key of a cache is hidden where the log names that.
func TestAMaskedKeyOfACacheIsHidden(t *testing.T) {
	p := newProject(t, `
job:
  variables: {TOKEN: "secret/part of it"}
  cache: {key: $TOKEN, paths: [c]}
  script: ['echo x > c']
`)
	run := p.start("-cache", "caches", "-mask", "TOKEN")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "1 file kept")
	assert.NotContains(t, run.Stdout(), "secret")

	lock := filepath.Join(p.dir, "caches", ".locks", "cache-secret%2Fpart%20of%20it")
	require.NoError(t, os.RemoveAll(lock))
	require.NoError(t, os.Mkdir(lock, 0o700), "which is no file that can be locked")
	run = p.start("-cache", "caches", "-mask", "TOKEN")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "cannot take the cache")
	assert.Contains(t, run.Stdout(), "cannot keep the cache")
	assert.NotContains(t, run.Stdout(), "secret")
}

// The key of a cache is made of files as they are before the job: a script that writes them keeps the cache that the next run finds.
func TestAKeyOfFilesThatTheScriptWrites(t *testing.T) {
	p := newProject(t, `
job:
  cache: {key: {files: [lock]}, paths: [c]}
  script: ['test ! -e c || echo hit', 'echo changed > lock; echo x > c']
`)
	p.write("lock", "as it was\n")
	for _, hits := range []int{0, 1} {
		run := p.start("-cache", "caches")
		assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
		assert.Equal(t, hits, strings.Count(run.Stdout(), "[job] hit\n"), run.Stdout())
	}
}

// A file of a key that never ends, or that nobody writes to, holds no run up: it counts as empty.
func TestAKeyOfFilesThatAreNone(t *testing.T) {
	p := newProject(t, `
job:
  cache: {key: {files: [zero, pipe, dir]}, paths: [c]}
  before_script: ['mkfifo pipe; ls']
  script: ['echo x > c']
`)
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(p.dir, "zero")))
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "dir"), 0o700))
	p.write("dir/file", "")
	run := p.start("-cache", "caches")
	assert.Equal(t, 0, run.Wait(), run.Stdout()+run.Stderr())
	assert.Contains(t, run.Stdout(), "1 file kept\n")
}
